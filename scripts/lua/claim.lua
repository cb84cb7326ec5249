-- Lease the next due jobs of a pool to one worker.
--
-- KEYS home     hash  the tenant's meta
-- ARGV pool     text  which pool
-- ARGV worker   text  who asks
-- ARGV token    text  names this claim: asked again under the same token, it answers the same leases
-- ARGV lease    ms    how long a lease lasts
-- ARGV grace    ms    how long after its time-out a job may still be settled by its worker
-- ARGV want     int   how many at most
-- ARGV ahead    int   how many of them are for slots that are busy yet: those take no job of a concurrency key or a rate limit
-- REST task           one that the worker does not know; normally there is none
-- GIVES         {version, due of what is left or "", reason if nothing was found, next expiry of any lease or "",
--               when business rows are to be looked at or "", lease, lease, ...}

local EARLIEST_EVERY = 4
local MEMO_MS = 60000

-- Whether a job should share its process with no other. The process of its last attempt died, and nobody knows whether
-- this job did it; or one more loss is its last, and that must not be the fault of another.
local function alone(job)
  local before = read_attempt(job, job.attempts - 1)
  return before and before.cause == 'killed' or job.losses + 1 >= tonumber(job.max_lost)
end

-- How many steps its call tree has counted: they stand with the job at the top of it.
local function spent_of(job)
  local root = string.match(get_blob(job, 'lineage'), '^(%S+)')
  if not root or root == '-' then return job.spent or '' end
  return redis.call('HGET', K.row(root), SHORT.spent) or ''
end

local function reply_of(job, lease_until)
  return {job.id, job.task, job.fence, job.attempts, text(lease_until), job.deadline, job.generation, job.failures,
    job.chunk, job.edit, job.created, job.run_at or job.created, job.background or '', get_blob(job, 'fire'),
    job.fire_time or '', job.max_attempts, get_blob(job, 'trace'), get_blob(job, 'args'), get_blob(job, 'cursor'),
    alone(job) and '1' or '', keyed.needs(job) and '1' or '', get_blob(job, 'lineage'), spent_of(job)}
end

local queue = K.queue(pool)
local unknown = {}
for at = FIRST, #ARGV do unknown[ARGV[at]] = true end

local later, held, others_may_know = math.huge, false, false
local own = {} -- of a due job that stands in a line of its task's own: the task

-- Answers the floor of each priority that a line has jobs of, and its first score.
local function priorities(key)
  local from = '-inf'
  return function()
    local first = redis.call('ZRANGEBYSCORE', key, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    if not first then return nil end
    local floor = math.floor(first / BAND) * BAND
    from = text(floor + BAND)
    return floor, tonumber(first)
  end
end

-- The due jobs of each priority of a line go to `bands`. One more than `want` of each is looked at, so that it is known whether
-- something is left. Answers whether the line has any jobs.
local function look_along(key, bands, task)
  local any = false
  for floor in priorities(key) do
    any = true
    local due = redis.call('ZRANGEBYSCORE', key, text(floor), text(floor + now), 'WITHSCORES', 'LIMIT', 0, want + 1)
    if #due > 0 then bands[#bands + 1] = {floor = floor, due = due, next = 1} end
    for at = 1, task and #due or 0, 2 do own[due[at]] = task end
    if #due <= 2 * want then
      local rest = redis.call('ZRANGEBYSCORE', key, '(' .. text(floor + now), text(floor + BAND - 1), 'WITHSCORES', 'LIMIT', 0, 1)
      if rest[2] then later = math.min(later, rest[2] - floor) end
    end
  end
  return any
end

-- When the first job of a line is due; nil if it has none.
local function earliest_in(key)
  local earliest
  for floor, first in priorities(key) do earliest = math.min(earliest or math.huge, first - floor) end
  return earliest
end

-- A line that is not for this worker, or not yet.
local function pass_by(key, task, opens)
  local earliest = earliest_in(key)
  if not earliest then return false end
  if unknown[task] then gates.report_unknown(task) end
  if opens > now or earliest > now then
    held = held or gates.task_held(task) ~= nil
    later = math.min(later, math.max(earliest, opens))
  else
    others_may_know = true
  end
  return true
end

-- One band for each priority, with the jobs of all lines in the order of the queue.
local function merged(found)
  local bands, of = {}, {}
  for _, band in ipairs(found) do
    local entries = of[band.floor]
    if not entries then
      entries = {}
      of[band.floor] = entries
      bands[#bands + 1] = band
    end
    for at = 1, #band.due, 2 do entries[#entries + 1] = {band.due[at], tonumber(band.due[at + 1])} end
  end
  for _, band in ipairs(bands) do
    local entries = of[band.floor]
    table.sort(entries, function(one, other) return one[2] < other[2] or (one[2] == other[2] and one[1] < other[1]) end)
    for at, entry in ipairs(entries) do band.due[2 * at - 1], band.due[2 * at] = entry[1], entry[2] end
  end
  table.sort(bands, function(one, other) return one.floor < other.floor end)
  return bands
end

-- The pool's queue, and beside it the lines of tasks of their own, as far as their gates let them through.
local function heads(lines)
  local bands = {}
  look_along(queue, bands)
  if not lines then return bands end
  for task in string.gmatch(lines, '%S+') do
    gates.let_go('hold task ' .. task, gates.of(task)[1])
    local key, opens = K.queue(own_line(pool, task)), gates.opens_at(task)
    local any
    if unknown[task] or opens > now then any = pass_by(key, task, opens) else any = look_along(key, bands, task) end
    if not any and not gates.has(task) then
      unlist_line(pool, task)
      gates.drop('unknown ' .. task)
    end
  end
  return merged(bands)
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
  keyed.occupy(job)
  set(job, 'deadline', text(deadline))
  if not job.started then set(job, 'started', text(now)) end
  open_attempt(job, fence, worker)
  save(job)
  progress.start(job)
  announce(job)
  gates.count_start(job.task)
  return reply_of(job, lease_until)
end

local memo = redis.call('GET', K.memo(pool, worker))
if memo and string.sub(memo, 1, #token) == token then
  local leases = {text(read_clock()), text(now), '', text(next_expiry() or now), ''}
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
  if not job then return end
  leave_line(job)
  if job.state == 'pending' then join_line(job) end
  save(job)
end

-- A job that its task's gate holds back makes way for others, and with it those of its task that stand near it, so that a million
-- of them are soon out of the way. So many are looked at in one claim.
local NEAR = 150
local to_look_at = NEAR

local function step_aside(id)
  local job = load(id)
  leave_line(job)
  join_line(job)
  save(job)
end

local function stand_aside(first)
  local key, aside = keyed.key_of(first), K.queue(own_line(pool, first.task))
  local list = key and K.waiters(pool, key) or queue
  local from = redis.call('ZRANK', list, first.id) or 0
  local near = redis.call('ZRANGE', list, from, from + to_look_at - 1, 'WITHSCORES')
  to_look_at = to_look_at - #near / 2
  list_line(pool, first.task)
  for at = 1, #near, 2 do
    local id, score = near[at], near[at + 1]
    local task, state, is_aside, named, alone = unpack(redis.call('HMGET', K.row(id), SHORT.task, SHORT.state, SHORT.own_line,
      SHORT.concurrency_key, SHORT.exclusive))
    if task == first.task and (state or 'pending') == 'pending' and not is_aside then
      if named or alone then
        step_aside(id)
      else
        redis.call('HSET', K.row(id), SHORT.own_line, '1')
        drop(queue, id)
        add(aside, score, id)
      end
    end
  end
end

-- Whether a job's task keeps it from this worker now: what its rate limit lets start may have been used up by this claim.
local function is_gated(job, blocked)
  return blocked == 'held_task' or blocked == 'task_unknown' or (blocked == 'rate_limited' and gates.pace(job.task) <= 0)
end

local leases, ids, claimed, passed_over, kept = {}, {}, {}, false, false

local function pass_over(id, job, blocked)
  if keyed.has_just_filled(job) then return end -- show_heads hides it with the others of its key
  if job and is_gated(job, blocked) then
    if job.own_line then
      later = math.min(later, gates.opens_at(job.task)) -- this claim has used up what may start
      return
    end
    if blocked == 'task_unknown' then gates.report_unknown(job.task) end
    stand_aside(job)
  else
    put_right(id, job, blocked)
  end
  passed_over = true
end

local function take(id, job)
  leases[#leases + 1] = lease_one(job)
  ids[#ids + 1] = id
  if not claimed[job.task] then
    claimed[job.task] = true
    claimed[#claimed + 1], claimed[#claimed + 2] = 'claimed|' .. job.task, now
  end
end

-- Whether a due job that was not picked is not to be claimed any more: hidden, aside, or behind a gate that has closed.
local function is_gone(id)
  local task = own[id]
  if not task then return is_dropped(queue, id) end
  local opens = gates.opens_at(task)
  if opens > now then later = math.min(later, opens) end
  return opens > now or is_dropped(K.queue(own_line(pool, task)), id)
end

local lines, turn = read_meta('lines:' .. pool, 'turn:' .. pool)
gates.let_go('hold tenant ', gates.tenant_hold())
gates.let_go('hold pool ' .. pool, gates.pool_hold(pool))
local shut = gates.shut_until(pool)
if shut then
  local due = redis.call('HEXISTS', K.meta(), 'due:' .. pool) == 1 and shut or nil
  local expiry = next_expiry()
  return {readvertise(pool, due), due and text(due) or '', 'held', expiry and text(expiry) or '', ''}
end

local bands = heads(lines)
turn = tonumber(#bands > 1 and turn or 0)
while #leases < want and to_look_at > 0 do
  local id = pick(bands, turn + #leases + 1)
  if not id then break end
  if not is_dropped(queue, id) then
    local job = load(id)
    local blocked = not job or blocker(job) or (unknown[job.task] and 'task_unknown')
    if blocked then
      pass_over(id, job, blocked)
    elseif #leases >= want - ahead and (keyed.needs(job) or gates.has_rate(job.task)) then
      kept = true -- for somebody with a free slot
    else
      take(id, job)
      if keyed.shows_more(job) then break end
    end
  end
end

show_heads()
local left
repeat left = pick(bands, 1) until not left or not is_gone(left)
local now_due = left or passed_over or kept or others_may_know
local due = now_due and now or math.min(later, wanted[pool] or math.huge)
if due == math.huge then due = redis.call('EXISTS', K.hidden(pool)) == 1 and NEVER or nil end
if passed_over or kept or others_may_know then tick() end -- so that who claims sees that it is due now
local rows = wanted[bound.QUEUE] and advertise(bound.QUEUE, wanted[bound.QUEUE])
local version = readvertise(pool, due)
if #bands > 1 then redis.call('HINCRBY', K.meta(), 'turn:' .. pool, #leases) end
if #ids > 0 then
  redis.call('SET', K.memo(pool, worker), token .. table.concat(ids, ' '), 'PX', MEMO_MS)
  redis.call('HSET', K.figures(), 'claim|' .. pool, now, unpack(claimed))
end

local function reason()
  if #ids > 0 then return '' end
  if kept then return 'ahead' end
  if others_may_know then return 'task_unknown' end
  if held then return 'held' end
  if later < math.huge then return 'not_due' end
  return due and 'behind_keys' or 'no_jobs'
end

local first = math.min(soonest, next_expiry() or math.huge)
return {version, due and text(due) or '', reason(), first < math.huge and text(first) or '',
  rows and text(wanted[bound.QUEUE]) or '', unpack(leases)}
