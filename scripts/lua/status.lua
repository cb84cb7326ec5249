-- What a tenant's counters and sets say at this moment.
--
-- KEYS home  hash  the tenant's meta
-- ARGV most  int   how many stuck jobs are looked at, to tell whose they are
-- FLAGS no-writes
-- GIVES      {now, counts, figures: flat lists; running jobs, stuck ones (their lease is gone, and so it is when their deadline
--            has passed), when the first lease ends or "", pools with pending jobs, {task, pool, ...} of the stuck jobs looked at}

local pools, stuck = {}, {}
for _, field in ipairs(redis.call('HKEYS', K.meta())) do
  pools[#pools + 1] = string.match(field, '^due:([^@].*)$')
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', K.running(), '-inf', text(now), 'LIMIT', 0, most)) do
  local task, pool = unpack(redis.call('HMGET', K.row(id), SHORT.task, SHORT.pool))
  if task then stuck[#stuck + 1], stuck[#stuck + 2] = task, pool or DEFAULTS.pool end
end
return {text(now), redis.call('HGETALL', K.counts()), redis.call('HGETALL', K.figures()), redis.call('ZCARD', K.running()),
  redis.call('ZCOUNT', K.running(), '-inf', text(now)), redis.call('ZRANGE', K.running(), 0, 0, 'WITHSCORES')[2] or '', pools,
  stuck}
