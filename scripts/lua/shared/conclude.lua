-- What becomes of a job when its attempt ends: the rows of the contract's table, used by settle, reap and cancel.

local function wait_until(job, operation, run_at)
  set(job, 'run_at', text(run_at))
  move(operation, job)
end

-- A job whose owner handles its failures ends as failed; what only a person can judge is dead all the same.
local OWNERS = {attempts_exhausted = true, permanent_error = true}

local function bury(job, reason, cause, failure)
  set(job, 'dead_reason', reason)
  blame(job, cause, failure)
  move(job.end_as == 'failed' and OWNERS[reason] and 'give_up' or 'bury', job)
end

local function fail(job, cause, delay, permanent, summary, stack, failure)
  set(job, 'failures', text(job.failures + 1))
  end_attempt(job, 'failed', cause, summary, stack)
  if permanent then return bury(job, 'permanent_error', cause, failure) end
  if tonumber(job.failures) >= tonumber(job.max_attempts) then return bury(job, 'attempts_exhausted', cause, failure) end
  progress.rest(job, delay)
  wait_until(job, 'try_again', now + delay)
end

local function lose(job, cause, summary)
  set(job, 'losses', text(job.losses + 1))
  end_attempt(job, 'failed', cause, summary)
  if tonumber(job.losses) >= tonumber(job.max_lost) then return bury(job, 'lost_too_often', cause) end
  wait_until(job, 'try_again', now)
end

local function give_back(job, started, delay)
  if started then end_attempt(job, 'canceled', 'released') else forget_attempt(job) end
  wait_until(job, 'give_back', now + delay)
end

-- After a move: write the row and tell watchers. Whether the job is to be claimed again stands in the call's `news`.
local function conclude(job)
  progress.stop(job)
  save(job)
  announce(job)
end

-- A person's word takes a job out of its worker's hands, if it is in any: the attempt ends, the right to write is gone at once, and
-- the worker is told to stop. The one place that will have to ask whether a call outside is in flight.
local function withdraw(job, operation, cause, by, reason)
  local held = job.state == 'running'
  end_attempt(job, 'canceled', cause)
  set(job, 'generation', text(job.generation + 1))
  move(operation, job)
  note(job, operation, by, reason)
  conclude(job)
  if held then
    local word = 'stop ' .. job.pool .. ' ' .. tenant .. ' ' .. job.id .. ' ' .. job.fence
    redis.call('PUBLISH', namespace .. ':wake', job.state == 'paused' and word .. ' paused' or word)
  end
end

-- A job that nobody has started by its latest start is dead, whoever finds it so first: the claim or the reaper.
local function expire(job)
  set(job, 'dead_reason', 'expired')
  blame(job, 'expired')
  move('expire', job)
  conclude(job)
end
