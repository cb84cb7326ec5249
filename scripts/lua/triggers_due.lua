-- The due triggers of a tenant with what is needed to plan them.
--
-- KEYS home   hash  the tenant's meta
-- ARGV skip   int   how many of the first to pass over
-- ARGV limit  int   how many at most
-- FLAGS no-writes
-- GIVES       {now, version, earliest fire that is not due or "", then for each: {trigger, JobKey, revision, next, definition,
--             what it counts from or ""}}

local due = redis.call('ZRANGEBYSCORE', K.triggers(), '-inf', text(now), 'WITHSCORES', 'LIMIT', skip, limit)
local later = redis.call('ZRANGEBYSCORE', K.triggers(), '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
local answer = {text(now), text(read_clock()), later and text(later) or ''}
for at = 1, #due, 2 do
  local trigger, job_key = string.match(due[at], '^([^:]+):(.*)$')
  local revision, definition, anchor =
    unpack(redis.call('HMGET', K.schedule(job_key), 'revision', 'definition', 'anchor:' .. trigger))
  if revision then answer[#answer + 1] = {trigger, job_key, revision, text(due[at + 1]), definition, anchor or ''} end
end
return answer
