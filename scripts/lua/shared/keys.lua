-- Concurrency keys: at most `limit` jobs of a key are held at a time. A key's waiting jobs stand in sets of their own, one for
-- each line, in the line's order; the line shows only their heads, of each priority as many as the key has room for, and none
-- while it is full. So no claim ever looks at a job that its key forbids, however many there are.
--
-- A holder is a fence, not a job: after a cancel and a retry the old holder of a job may still be at work. It holds the key until
-- it says that it has stopped, or its lease has ended: it lingers.
--
-- A key is looked at once in an operation, before anything changes; `show_heads` then compares what was shown with what may be.
-- The sets of waiting jobs and of holders are written at once, the lines at the end as always.

local keyed = {}

local SHOWN_AT_MOST = 16

function keyed.needs(job)
  return job.concurrency_key or job.exclusive
end

-- The key a job needs, or nil. One that a user names is never one of an instance.
function keyed.key_of(job)
  if job.concurrency_key then return 'u:' .. get_blob(job, 'concurrency_key') end
  if job.exclusive then return 'i:' .. get_blob(job, 'instance') end
end

-- The first `many` waiting jobs of each priority, with their ranks.
local function heads_of(line, key, many)
  local heads, from = {}, '-inf'
  while many > 0 do
    local first = redis.call('ZRANGEBYSCORE', K.waiters(line, key), from, '+inf', 'WITHSCORES', 'LIMIT', 0, many + 1)
    local ceiling, all = first[1] and (math.floor(first[2] / BAND) + 1) * BAND, #first <= 2 * many
    for at = 1, math.min(#first, 2 * many), 2 do
      local score = tonumber(first[at + 1])
      if score >= ceiling and not all then break end
      heads[first[at]] = score
    end
    if all then break end
    from = text(ceiling)
  end
  return heads
end

local function wait_in(share, line)
  share.lines[line] = share.lines[line] or {shown = {}, came = {}}
  return share.lines[line]
end

-- How a key stands: its limit, its rate limit if it has one, how many hold it, and for each line with waiting jobs how many of each priority it shows.
function keyed.share_of(key)
  local share = touched[key]
  if share then return share end
  local stored = redis.call('HGETALL', K.share(key))
  share = {limit = 1, held = redis.call('HLEN', K.holders(key)), lines = {}}
  share.idle = #stored == 0 and share.held == 0
  for at = 1, #stored, 2 do
    if stored[at] == 'limit' then
      share.limit = tonumber(stored[at + 1])
    elseif stored[at] == 'rate' then
      share.rate = stored[at + 1]
    else
      local line = string.sub(stored[at], 2)
      local waiting = wait_in(share, line)
      waiting.stored = tonumber(stored[at + 1])
      waiting.shown = heads_of(line, key, waiting.stored)
    end
  end
  share.told, share.told_rate = share.limit, share.rate
  touched[key] = share
  return share
end

-- How many jobs of a key its rate limit lets start now; when none, from when on.
function keyed.pace_of(share, key)
  if not share.rate then return math.huge, now end
  share.used = share.used or redis.call('GET', K.pace(key)) or ''
  return allowance(share.rate, share.used)
end

local function share_to_change(key)
  local share = keyed.share_of(key)
  share.changed = true
  return share
end

-- Whether its line shows a waiting job, as far as this operation has looked.
function keyed.shows(share, job)
  local waiting = share.lines[line_of(job)]
  return waiting and waiting.shown[job.id]
end

-- A new job brings its key's limits; the last word counts, and a lower one lets the holders finish.
function keyed.tell_limit(job)
  local key = keyed.key_of(job)
  if not key then return end
  local share = share_to_change(key)
  share.limit, share.rate, share.idle = tonumber(job.concurrency_limit), job.key_rate, false
end

function keyed.room(share)
  return share.limit - share.held
end

-- A key that nobody uses has forgotten its limits: who comes first brings them again.
local function join_key(job, key)
  local share = share_to_change(key)
  if share.idle then
    share.limit, share.rate, share.idle = tonumber(job.concurrency_limit), job.key_rate, false
  end
  local score = rank(job)
  local line = line_of(job)
  redis.call('ZADD', K.waiters(line, key), score, job.id)
  wait_in(share, line).came[job.id] = tonumber(score)
end

local function leave_key(job, key)
  local line = line_of(job)
  local waiting = wait_in(share_to_change(key), line)
  redis.call('ZREM', K.waiters(line, key), job.id)
  if waiting.came[job.id] then
    waiting.came[job.id] = nil
  else
    drop(waiting.shown[job.id] and K.queue(line) or K.hidden(job.pool), job.id)
    waiting.shown[job.id] = nil
  end
end

-- A pending job comes into its line, or leaves it: behind its key's others, if it needs one.
local function join_line(job)
  choose_line(job)
  local key, line = keyed.key_of(job), line_of(job)
  if key then return join_key(job, key) end
  add(K.queue(line), rank(job), job.id)
  queued_in(line, tonumber(job.run_at or job.created))
end

local function leave_line(job)
  local key = keyed.key_of(job)
  if key then return leave_key(job, key) end
  drop(K.queue(line_of(job)), job.id)
end

-- In a line a head stands at its own place, or, while its key's rate limit lets none start, where it is due when one may.
local function show_heads_of(line, key, waiting, many, from)
  local heads, pool, task = heads_of(line, key, many), parts_of(line)
  if task and next(heads) then list_line(pool, task) end
  local function hide(id, score)
    add(K.hidden(pool), text(score), id)
    queued(pool, NEVER)
  end
  for id, score in pairs(waiting.shown) do
    if not heads[id] then
      drop(K.queue(line), id)
      hide(id, score)
    end
  end
  for id, score in pairs(waiting.came) do
    if not heads[id] then hide(id, score) end
  end
  for id, score in pairs(heads) do
    local run_at = score % BAND
    local due = math.max(run_at, from)
    if not waiting.shown[id] or from > 0 then
      add(K.queue(line), text(score - run_at + due), id)
      queued_in(line, due)
    end
    if not waiting.shown[id] and not waiting.came[id] then drop(K.hidden(pool), id) end
  end
end

-- The last word on every key that this operation has changed: what each line shows of it. A key that nobody holds and nobody
-- waits for leaves nothing behind.
function show_heads()
  local seen = touched
  touched = {}
  for key, share in pairs(seen) do
    if share.changed then
      local left, opens = keyed.pace_of(share, key)
      local many = math.max(0, math.min(keyed.room(share), math.max(left, 1), SHOWN_AT_MOST))
      local paced = share.rate or share.told_rate -- then a head may stand elsewhere than at its own place
      local from, used = paced and (left > 0 and 1 or opens) or 0, share.held > 0
      for line, waiting in pairs(share.lines) do
        if redis.call('EXISTS', K.waiters(line, key)) == 1 then
          show_heads_of(line, key, waiting, many, from)
          if waiting.stored ~= many then redis.call('HSET', K.share(key), '>' .. line, many) end
          used = true
        elseif waiting.stored then
          redis.call('HDEL', K.share(key), '>' .. line)
        end
      end
      if not used then
        redis.call('DEL', K.share(key))
      else
        if share.limit ~= share.told then redis.call('HSET', K.share(key), 'limit', text(share.limit)) end
        if share.rate ~= share.told_rate then
          if share.rate then redis.call('HSET', K.share(key), 'rate', share.rate) else redis.call('HDEL', K.share(key), 'rate') end
        end
      end
    end
  end
end

-- Of a job that its line showed when the operation began: whether others have taken the last places at its key since, or the last
-- starts of its rate.
function keyed.has_just_filled(job)
  local key = job and keyed.key_of(job)
  local share = key and touched[key]
  return share and share.taken and keyed.shows(share, job) and (keyed.room(share) <= 0 or keyed.pace_of(share, key) <= 0)
end

-- Whether a key has room for more jobs than the line showed of it: they come next, before what stands behind them in the line.
function keyed.shows_more(job)
  local key = keyed.key_of(job)
  local share, line = key and touched[key], line_of(job)
  return share and keyed.room(share) > 0 and keyed.pace_of(share, key) > 0 and share.taken >= (share.lines[line].stored or 0)
    and redis.call('EXISTS', K.waiters(line, key)) == 1
end

-- A claim takes a place at the key; settle, give back and reap end it.
function keyed.occupy(job)
  local key = keyed.key_of(job)
  if not key then return end
  local share = share_to_change(key)
  redis.call('HSET', K.holders(key), job.fence, job.id)
  share.held = share.held + 1
  share.taken = (share.taken or 0) + 1
  if share.rate then
    keyed.pace_of(share, key)
    local used, period = with_start(share.rate, share.used)
    share.used = used
    redis.call('SET', K.pace(key), used, 'PX', 2 * period + 60000) -- nothing depends on its end
  end
end

local function free_place(key, fence)
  local share = share_to_change(key)
  share.held = share.held - redis.call('HDEL', K.holders(key), fence)
end

-- Its holder says that it has stopped, or its lease has ended.
function keyed.vacate(job)
  local key = keyed.key_of(job)
  if key then free_place(key, job.fence) end
  job.vacated = true
end

-- A holder that was not asked holds its key until it has stopped.
function keyed.linger(job)
  local key = keyed.key_of(job)
  if not key or job.vacated then return end
  local lease_until = redis.call('ZSCORE', K.running(), job.id) or now
  add(K.lingering(), lease_until, job.fence .. ' ' .. job.id .. ' ' .. key)
end

-- The holder of a job that was taken from it says that it has stopped. Says it again, and nothing changes.
function keyed.stop_lingering(job, fence)
  local key = job and keyed.key_of(job)
  local member = key and fence .. ' ' .. job.id .. ' ' .. key
  if not member or not redis.call('ZSCORE', K.lingering(), member) then return end
  redis.call('ZREM', K.lingering(), member)
  free_place(key, fence)
end

-- Let go of the first holders, at most `limit`, that have not said so and whose leases have ended. Answers how many.
function keyed.end_lingering(limit)
  local over = redis.call('ZRANGEBYSCORE', K.lingering(), '-inf', text(now), 'LIMIT', 0, limit)
  for _, member in ipairs(over) do
    local fence, key = string.match(member, '^(%d+) %S+ (.*)$')
    redis.call('ZREM', K.lingering(), member)
    free_place(key, fence)
  end
  return #over
end
