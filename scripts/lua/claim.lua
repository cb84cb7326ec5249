-- Lease the next due jobs of a pool to one worker.
--
-- KEYS home     hash  the tenant's meta
-- ARGV pool     text  which pool
-- ARGV worker   text  who asks
-- ARGV token    text  names this claim: asked again under the same token, it answers the same leases
-- ARGV lease    ms    how long a lease lasts
-- ARGV grace    ms    how long after its time-out a job may still be settled by its worker
-- ARGV want     int   how many at most
-- ARGV ahead    int   how many of them are for slots that are busy yet: those take no job with a concurrency key
-- GIVES         {version, due of what is left or "", reason if nothing was found, next expiry of any lease or "",
--               lease, lease, ...}

local EARLIEST_EVERY = 4
local MEMO_MS = 60000

-- Whether a job should share its process with no other. The process of its last attempt died, and nobody knows whether
-- this job did it; or one more loss is its last, and that must not be the fault of another.
local function alone(job)
  local before = read_attempt(job, job.attempts - 1)
  return before and before.cause == 'killed' or job.losses + 1 >= tonumber(job.max_lost)
end

local function reply_of(job, lease_until)
  return {job.id, job.task, job.fence, job.attempts, text(lease_until), job.deadline, job.generation, job.failures,
    job.chunk, job.edit, job.created, job.run_at or job.created, job.background or '', get_blob(job, 'fire'),
    job.fire_time or '', job.max_attempts, get_blob(job, 'trace'), get_blob(job, 'args'), get_blob(job, 'cursor'),
    alone(job) and '1' or '', needs_key(job) and '1' or ''}
end

local queue = K.queue(pool)

-- The due jobs of each priority that has any, and the earliest instant of what is not due yet. One more than `want` of
-- each is looked at, so that it is known whether something is left.
local function heads()
  local bands, later, from = {}, nil, '-inf'
  repeat
    local first = redis.call('ZRANGEBYSCORE', queue, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if not first[1] then break end
    local floor = math.floor(first[2] / BAND) * BAND
    local due = redis.call('ZRANGEBYSCORE', queue, text(floor), text(floor + now), 'WITHSCORES', 'LIMIT', 0,
      want + 1)
    if #due > 0 then bands[#bands + 1] = {floor = floor, due = due, next = 1} end
    if #due <= 2 * want then
      local rest = redis.call('ZRANGEBYSCORE', queue, '(' .. text(floor + now), text(floor + BAND - 1),
        'WITHSCORES', 'LIMIT', 0, 1)
      if rest[2] then later = math.min(later or math.huge, rest[2] - floor) end
    end
    from = text(floor + BAND)
  until false
  return bands, later
end

-- By priority; each fourth claim of the pool takes the earliest due instead, so that nothing starves.
local function pick(bands, turn)
  local best
  for _, band in ipairs(bands) do
    local score = band.due[band.next + 1]
    if score then
      local run_at = score - band.floor
      if not best then
        best = {band = band, run_at = run_at}
        if turn % EARLIEST_EVERY ~= 0 then break end
      elseif run_at < best.run_at then
        best = {band = band, run_at = run_at}
      end
    end
  end
  if not best then return nil end
  local id = best.band.due[best.band.next]
  best.band.next = best.band.next + 2
  return id, best.run_at
end

local soonest = math.huge

local function lease_one(job)
  local fence = tick()
  local deadline = now + job.timeout + grace
  local lease_until = math.min(now + lease, deadline)
  soonest = math.min(soonest, lease_until)
  move('claim', job, lease_until)
  set(job, 'fence', fence)
  occupy(job)
  set(job, 'deadline', text(deadline))
  if not job.started then set(job, 'started', text(now)) end
  open_attempt(job, fence, worker)
  save(job)
  start_working(job)
  announce(job)
  return reply_of(job, lease_until)
end

local memo = redis.call('GET', K.memo(pool, worker))
if memo and string.sub(memo, 1, #token) == token then
  local leases = {text(read_clock()), text(now), '', text(next_expiry() or now)}
  for id in string.gmatch(string.sub(memo, #token + 1), '%S+') do
    local job = load(id)
    local lease_until = tonumber(redis.call('ZSCORE', K.running(), id) or 0)
    if job and job.state == 'running' and job.packed['w' .. job.attempts] == worker and lease_until > now then
      leases[#leases + 1] = reply_of(job, lease_until)
    end
  end
  return leases
end

-- What cannot be leased does not stand in front of the rest: a job that may not wait any longer goes where it must; any other is
-- damage, an entry that does not follow from its row, and is put right.
local function put_right(id, job, blocked)
  if job and put_away(job, blocked) then return end
  drop(queue, id)
  if job then leave_line(job) end
  if job and job.state == 'pending' then join_line(job) end
end

local bands, later = heads()
local leases, ids, claimed, passed_over, kept = {}, {}, {}, false, false
local turn = tonumber(#bands > 1 and redis.call('HGET', K.meta(), 'turn:' .. pool) or 0)
while #leases < want do
  local id = pick(bands, turn + #leases + 1)
  if not id then break end
  local job = load(id)
  local blocked = not job or blocker(job)
  if blocked and not has_just_filled(job) then
    passed_over = true
    put_right(id, job, blocked)
  elseif blocked then
    -- its key was taken by another one just now; it is hidden with the rest of them
  elseif #leases >= want - ahead and needs_key(job) then
    kept = true -- for somebody with a free slot
  else
    leases[#leases + 1] = lease_one(job)
    ids[#ids + 1] = id
    if not claimed[job.task] then
      claimed[job.task] = true
      claimed[#claimed + 1], claimed[#claimed + 2] = 'claimed|' .. job.task, now
    end
    if shows_more_later(job) then break end
  end
end

show_heads()
local left
repeat left = pick(bands, 1) until not left or not is_dropped(queue, left)
local due = (left or passed_over or kept) and now or math.min(later or math.huge, wanted[pool] or math.huge)
if due == math.huge then due = redis.call('EXISTS', K.hidden(pool)) == 1 and NEVER or nil end
if passed_over or kept then tick() end -- so that who claims sees that it is due now
local version = readvertise(pool, due)
if #bands > 1 then redis.call('HINCRBY', K.meta(), 'turn:' .. pool, #leases) end
if #ids > 0 then
  redis.call('SET', K.memo(pool, worker), token .. table.concat(ids, ' '), 'PX', MEMO_MS)
  redis.call('HSET', K.figures(), 'claim|' .. pool, now, unpack(claimed))
end
local reason = #ids > 0 and '' or kept and 'ahead' or later and 'not_due' or due and 'behind_keys' or 'no_jobs'
local first = math.min(soonest, next_expiry() or math.huge)
return {version, due and text(due) or '', reason, first < math.huge and text(first) or '', unpack(leases)}
