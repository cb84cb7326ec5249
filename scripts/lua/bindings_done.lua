-- What came of writing business rows. Of two who wrote the same one, the word of the later state counts.
--
-- KEYS home  hash  the tenant's meta
-- REST id revision clock error pause   what was written, under which clock; an error and how long to wait, or "" and ""
-- GIVES      {next visit or "", version}

local function written(job, revision, clock)
  local key = K.progress(job.id)
  redis.call('HSET', key, 'bind_rev', revision, 'bind_clock', clock, 'bind_at', text(now), 'bind_wait', text(now + bound.APART_MS))
  redis.call('HDEL', key, 'bind_error', 'bind_tries')
  if revision == job.revision then return bound.rest(job) end
  redis.call('ZADD', K.bound(), text(now + bound.APART_MS), job.id)
end

local function failed(job, why, pause)
  local again = text(now + pause)
  redis.call('HSET', K.progress(job.id), 'bind_error', why, 'bind_wait', again)
  redis.call('HINCRBY', K.progress(job.id), 'bind_tries', 1)
  redis.call('ZADD', K.bound(), again, job.id)
end

for at = FIRST, #ARGV, 5 do
  local id, revision, clock, why, pause = unpack(ARGV, at, at + 4)
  local job = load(id)
  local newest = job and tonumber(redis.call('HGET', K.progress(id), 'bind_clock') or 0)
  if job and bound.is_current(job) and tonumber(clock) > newest then
    if why == '' then written(job, revision, clock) else failed(job, why, pause) end
  end
end

local due = bound.due()
return {due and text(due) or '', readvertise(bound.QUEUE, due)}
