-- Take expired leases back: the attempt ends as lost, or as timed out when the job's deadline has passed too. Let go of holders
-- of concurrency keys that linger past theirs, of jobs that were not started by their latest start, of flags of instances whose
-- time is over, and of jobs that were kept long enough.
--
-- KEYS home    hash  the tenant's meta
-- ARGV limit   int   how many at most
-- REST delay         before the attempt after the first, second, ... time-out; the last stands for all further ones
-- FLAGS allow-oom
-- GIVES        {next expiry or "", version, ids: {id, state}, news: {pool, due, version}, instances whose walk nobody drives,
--               batches that nobody works off}

local RETIRED = 200 -- jobs whose time is over; 12 us each

local function backoff(failures)
  return tonumber(ARGV[math.min(FIRST + failures, #ARGV)])
end

local ids = {}
local expired = redis.call('ZRANGEBYSCORE', K.running(), '-inf', text(now), 'LIMIT', 0, limit)
for _, id in ipairs(expired) do
  local job = load(id)
  if not job or job.state ~= 'running' then
    drop(K.running(), id)
  else
    keyed.vacate(job)
    if tonumber(job.deadline) <= now then
      fail(job, 'timeout', backoff(tonumber(job.failures)), false, 'no outcome arrived before the deadline', '')
    else
      lose(job, 'lease_lost', 'the lease ended and was not renewed')
    end
    conclude(job)
    ids[#ids + 1] = {id, job.state}
  end
end

local over = redis.call('ZRANGEBYSCORE', K.leases(), '-inf', text(now), 'LIMIT', 0, limit)
for _, name in ipairs(over) do
  redis.call('DEL', K.lease(name))
  drop(K.leases(), name)
end

local late = redis.call('ZRANGEBYSCORE', K.starts(), '-inf', text(now), 'LIMIT', 0, limit)
for _, id in ipairs(late) do
  local job = load(id)
  if job and put_away(job, blocker(job)) then
    ids[#ids + 1] = {id, job.state}
  else
    drop(K.starts(), id)
  end
end

local walks = {}
for _, instance in ipairs(redis.call('ZRANGEBYSCORE', K.instances(), '-inf', text(now), 'LIMIT', 0, limit)) do
  if visit(instance) then walks[#walks + 1] = instance end
end
keyed.end_lingering(limit)

local batches = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', K.batch_work(), '-inf', text(now), 'LIMIT', 0, limit)) do
  if visit_batch(id) then batches[#batches + 1] = id end
end

local first = math.min(next_expiry(#expired, #over, #late) or math.huge, retire_all(RETIRED) or math.huge)
return {first < math.huge and text(math.max(now, first)) or '', text(read_clock()), ids, news(), walks, batches}
