-- What a person does to a job, to one alone or to one of many: a new round, or the end.

-- Nil, or the code and the sentence of why the job may not begin a new round.
local function not_retriable(job, force)
  local refused = may('retry', job)
  if refused then return 'WRONG_STATE', refused end
  if admitted(job) == 'canceled' then
    return 'INSTANCE_ENDED', 'retry of job ' .. job.id .. ' refused: its instance ' .. get_blob(job, 'instance') .. ' has ended'
  end
  if job.dead_reason == 'outcome_unknown' and job.confirmed ~= '0' and not force then
    local subject = 'retry of job ' .. job.id .. ' refused: a call outside '
    if job.confirmed then return 'OUTCOME_HAPPENED', subject .. 'has happened, as was confirmed' end
    return 'OUTCOME_UNKNOWN', subject .. 'may or may not have happened'
  end
  local holder = job.unique and redis.call('HGET', K.unique(), job.unique)
  if holder and holder ~= job.id then
    return 'KEY_REUSED', 'retry of job ' .. job.id .. ' refused: its idempotency key belongs to job ' .. holder .. ' now'
  end
end

-- Its counts start again, its attempts stay on record, and it goes on from its last checkpoint.
local function begin_round(job, verb, run_at, by, reason)
  set(job, 'generation', text(job.generation + 1))
  for _, name in ipairs({'failures', 'losses', 'dead_reason', 'confirmed', 'finished', 'start_by', 'spent'}) do unset(job, name) end
  put_or_drop_blob(job, 'reason', reason)
  if job.unique then redis.call('HSET', K.unique(), job.unique, job.id) end
  bound.take_over(job)
  wait_until(job, 'retry', run_at)
  note(job, verb, by, reason)
  conclude(job)
end

-- It begins from the beginning. Of a background task the log goes on.
local function forget_progress(job)
  put_or_drop_blob(job, 'cursor', '')
  unset(job, 'chunk')
  if job.background then progress.restart(job) end
end

-- Cancel or skip it; answers the state it was in.
local function stop(job, verb, by, reason)
  local before, kept = job.state, reason
  if verb == 'skip' then kept = reason == '' and 'skipped' or 'skipped: ' .. reason end
  if kept ~= '' then put_blob(job, 'reason', kept) end
  withdraw(job, verb, 'canceled', by, reason)
  return before
end
