-- The only place where a job's state changes: the table MOVES decides, and the sets by state follow.

local STOPPED = {dead = true, failed = true, canceled = true, paused = true, waiting = true}
local ENDED = {dead = true, failed = true, canceled = true, succeeded = true}

-- Whether the job must be started by an instant, and never was.
local function owes_its_start(job)
  return job.start_by and job.state == 'pending' and job.attempts == '0'
end

-- Running and dead jobs are counted by pool too, and by task those that wait for another try after an error.
local function count_apart(job, change)
  if job.state == 'running' or job.state == 'dead' then
    figure(job.state, job.pool, change)
  elseif job.state == 'pending' and job.failures ~= '0' then
    figure('again', job.task, change)
  end
end

local function leave_set(job)
  count_apart(job, -1)
  if owes_its_start(job) then drop(K.starts(), job.id) end
  if job.state == 'pending' then
    leave_line(job)
  elseif job.state == 'running' then
    keyed.linger(job)
    drop(K.running(), job.id)
  elseif STOPPED[job.state] then
    drop(K.stopped(job.state), job.id)
    if BURIED[job.state] then leave_cluster(job) end
  end
end

local function join_set(job, lease_until)
  count_apart(job, 1)
  if owes_its_start(job) then add(K.starts(), job.start_by, job.id) end
  if job.state == 'pending' then
    join_line(job)
  elseif job.state == 'running' then
    add(K.running(), text(lease_until), job.id)
  elseif job.state == 'succeeded' then
    redis.call('RPUSH', K.succeeded(), job.id)
  else
    add(K.stopped(job.state), text(now), job.id)
    if BURIED[job.state] then join_cluster(job) end
  end
end

local function free_unique(job)
  if job.unique and redis.call('HGET', K.unique(), job.unique) == job.id then
    redis.call('HDEL', K.unique(), job.unique)
  end
end

-- Nil, or why the operation is refused in the job's state. Asked before the first write.
local function may(operation, job)
  if MOVES[operation][job.state] then return nil end
  return operation .. ' of job ' .. job.id .. ' refused: it is ' .. job.state
end

-- A job comes to a state, with all that belongs to it but its place in the sets.
local function arrive(job, state)
  set(job, 'state', state)
  if state == 'paused' then set(job, 'remaining', text(math.max(0, (job.run_at or job.created) - now))) end
  if ENDED[state] then
    set(job, 'finished', text(now))
    if job.unique_mode == 'active' then free_unique(job) end
  end
end

-- What its instance makes of a job that would be pending again and may not: a person's word too, and so a new round of its own.
local TURNED = {paused = 'pause', canceled = 'cancel'}

local function turn_away(job, state)
  local word = state == 'canceled' and clear_word or word_on
  end_attempt(job, 'canceled', state)
  set(job, 'generation', text(job.generation + 1))
  note(job, TURNED[state], word(job))
end

local function move(operation, job, lease_until)
  local from, to = job.state, MOVES[operation][job.state]
  local comes_back = to == 'pending' and from ~= 'pending'
  if comes_back then to = admitted(job) end
  leave_set(job)
  if from == 'paused' then unset(job, 'remaining') end
  arrive(job, to)
  set(job, 'revision', text(job.revision + 1))
  if comes_back and to ~= 'pending' and not ENDED[from] then turn_away(job, to) end -- else the retry is the new round
  if job.log_month and ENDED[to] and not ENDED[from] then log.finish(job) end
  join_set(job, lease_until)
  if to == 'dead' then mourn(job) end
  count(job.task, from, -1)
  count(job.task, to, 1)
end

local function announce(job)
  if job.background then
    bound.owe(job)
    redis.call('HSET', K.progress(job.id), 'updated', text(now))
    redis.call('PUBLISH', namespace .. ':watch', tenant .. ' ' .. job.id .. ' ' .. job.revision)
  end
end
