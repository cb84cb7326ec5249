-- A pool's advertised due time: the earliest instant at which somebody outside was told to look. A job that is due earlier
-- must be told of (a hint to sleeping workers, an entry in the tenant index); one that is due later need not.

-- Nil when nobody needs to be told, else the tenant clock that makes this news comparable with later news.
local function advertise(pool, due)
  local field = 'due:' .. pool
  local told = tonumber(redis.call('HGET', K.meta(), field) or false)
  if told and told <= due then return nil end
  redis.call('HSET', K.meta(), field, text(due))
  redis.call('PUBLISH', namespace .. ':wake', 'due ' .. pool .. ' ' .. tenant .. ' ' .. text(due))
  return tick()
end

-- The next end of a lease, of a job or a named one, past the first `jobs` and `names` of them; nil when none is held. It is
-- what the index is told of: one of the two alone would hide an earlier one of the other.
local function next_expiry(jobs, names)
  local job = redis.call('ZRANGE', K.running(), jobs, jobs, 'WITHSCORES')[2]
  local name = redis.call('ZRANGE', K.leases(), names, names, 'WITHSCORES')[2]
  return job and name and math.min(job, name) or tonumber(job or name)
end

-- What a claim found to be left: nil when the pool is empty.
local function readvertise(pool, due)
  local field = 'due:' .. pool
  local told = redis.call('HGET', K.meta(), field)
  if due then
    if told ~= text(due) then redis.call('HSET', K.meta(), field, text(due)) end
  elseif told then
    redis.call('HDEL', K.meta(), field)
  end
  return ticked and text(clock) or text(read_clock())
end
