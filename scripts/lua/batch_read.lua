-- Batches as they stand, the newest first; or one of them with its jobs.
--
-- KEYS home   hash  the tenant's meta
-- ARGV id     text  which one; empty: the newest
-- ARGV limit  int   how many at most
-- FLAGS       no-writes
-- GIVES       for each: {id, flat list of names and values, jobs: "id generation", skipped jobs: flat list of id and code}; the last
--             two empty where many are asked for

if id ~= '' then
  if redis.call('EXISTS', K.batch(id)) == 0 then return {} end
  return {{id, redis.call('HGETALL', K.batch(id)), redis.call('LRANGE', K.batch_jobs(id), 0, -1),
    redis.call('HGETALL', K.batch_skips(id))}}
end
local found = {}
for at, one in ipairs(redis.call('ZREVRANGE', K.batches(), 0, limit - 1)) do
  found[at] = {one, redis.call('HGETALL', K.batch(one)), {}, {}}
end
return found
