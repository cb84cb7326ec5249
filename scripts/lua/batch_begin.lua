-- Begin a batch that was written down: from now on it is worked off, by whoever began it or by a reaper. One that has begun is the same
-- batch and stays as it is.
--
-- KEYS home    hash  the tenant's meta
-- ARGV id      text  which batch
-- ARGV rate    text  at most so many jobs are due in a second
-- ARGV by      text  who says so
-- ARGV reason  text  why
-- FLAGS        allow-oom
-- GIVES        {"1", or "0" if it had begun before, when the reaper is wanted: {due, version}, else {}}
-- FAILS        NOT_FOUND

local state = redis.call('HGET', K.batch(id), 'state')
if not state then return refuse('NOT_FOUND', 'batch ' .. id .. ' is not on record') end
if state ~= 'planned' then return {'0', {}} end
redis.call('HSET', K.batch(id), 'state', 'running', 'rate', rate, 'by', by, 'reason', reason, 'begun', text(now),
  'next', text(now_us))
redis.call('ZADD', K.batch_work(), text(now + DRIVE_MS), id)
return {'1', {text(next_expiry()), tick()}}
