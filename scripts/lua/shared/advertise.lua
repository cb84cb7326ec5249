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

-- What the tenant index has to hear of all that came into queues in this operation: {pool, due, version}, one for each pool that
-- is due sooner, or, with an empty due time, wants no visit any more.
local function news()
  show_heads()
  local told = {}
  for pool, due in pairs(wanted) do
    if string.sub(pool, 1, 1) ~= '@' then due = math.max(due, gates.shut_until(pool) or 0) end -- only jobs are held
    local over = due == math.huge
    local version = over and tick() or advertise(pool, due)
    if version then told[#told + 1] = {pool, over and '' or text(due), version} end
  end
  return told
end

-- When the reaper is next wanted: the next end of a lease, of a job, a named one or one that lingers, or the next latest start,
-- past the first `jobs`, `names` and `starts` of them, or the next visit to an instance or a batch; nil when there is none. One
-- of them alone would hide an earlier one of another.
local function next_expiry(jobs, names, starts)
  local soonest = math.huge
  for key, past in pairs({[K.running()] = jobs or 0, [K.leases()] = names or 0, [K.starts()] = starts or 0,
      [K.instances()] = 0, [K.batch_work()] = 0, [K.lingering()] = 0}) do
    soonest = math.min(soonest, redis.call('ZRANGE', key, past, past, 'WITHSCORES')[2] or math.huge)
  end
  return soonest < math.huge and soonest or nil
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
