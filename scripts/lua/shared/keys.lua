-- Concurrency keys: at most `limit` jobs of a key are held at a time. A key's waiting jobs stand in sets of their own, one for
-- each line, in the line's order; the line shows only their heads, of each priority as many as the key has room for, and none
-- while it is full. So no claim ever looks at a job that its key forbids, however many there are.
--
-- A holder is a fence, not a job: after a cancel and a retry the old holder of a job may still be at work. It holds the key until
-- it says that it has stopped, or its lease has ended: it lingers.
--
-- A key is looked at once in an operation, before anything changes; `show_heads` then compares what was shown with what may be.
-- The sets of waiting jobs and of holders are written at once, the lines at the end as always.

local SHOWN_AT_MOST = 16

local function needs_key(job)
  return job.concurrency_key or job.exclusive
end

-- The key a job needs, or nil. One that a user names is never one of an instance.
local function key_of(job)
  if job.concurrency_key then return 'u:' .. get_blob(job, 'concurrency_key') end
  if job.exclusive then return 'i:' .. get_blob(job, 'instance') end
end

-- The first `many` waiting jobs of each priority, with their ranks.
local function heads_of(line, key, many)
  local heads, from = {}, '-inf'
  while many > 0 do
    local first = redis.call('ZRANGEBYSCORE', K.waiters(line, key), from, '+inf', 'WITHSCORES', 'LIMIT', 0, many)
    if not first[1] then break end
    local ceiling = (math.floor(first[2] / BAND) + 1) * BAND
    for at = 1, #first, 2 do
      local score = tonumber(first[at + 1])
      if score >= ceiling then break end
      heads[first[at]] = score
    end
    from = text(ceiling)
  end
  return heads
end

local function wait_in(share, line)
  share.lines[line] = share.lines[line] or {shown = {}, came = {}}
  return share.lines[line]
end

-- How a key stands: its limit, how many hold it, and for each line with waiting jobs how many of each priority it shows.
local function share_of(key)
  local share = touched[key]
  if share then return share end
  local stored = redis.call('HGETALL', K.share(key))
  share = {limit = 1, held = redis.call('HLEN', K.holders(key)), lines = {}}
  share.idle = #stored == 0 and share.held == 0
  for at = 1, #stored, 2 do
    if stored[at] == 'limit' then
      share.limit = tonumber(stored[at + 1])
    else
      local line = string.sub(stored[at], 2)
      local waiting = wait_in(share, line)
      waiting.stored = tonumber(stored[at + 1])
      waiting.shown = heads_of(line, key, waiting.stored)
    end
  end
  share.told = share.limit
  touched[key] = share
  return share
end

local function share_to_change(key)
  local share = share_of(key)
  share.changed = true
  return share
end

-- A new job brings its key's limit; the last word counts, and a lower one lets the holders finish.
local function tell_limit(job)
  local key = key_of(job)
  if not key then return end
  local share = share_to_change(key)
  share.limit, share.idle = tonumber(job.concurrency_limit), false
end

local function room(share)
  return share.limit - share.held
end

-- A key that nobody uses has forgotten its limit: who comes first brings it again.
local function join_key(job, key)
  local share = share_to_change(key)
  if share.idle then
    share.limit, share.idle = tonumber(job.concurrency_limit), false
  end
  local score = rank(job)
  redis.call('ZADD', K.waiters(job.pool, key), score, job.id)
  wait_in(share, job.pool).came[job.id] = tonumber(score)
end

local function leave_key(job, key)
  local waiting = wait_in(share_to_change(key), job.pool)
  redis.call('ZREM', K.waiters(job.pool, key), job.id)
  if waiting.came[job.id] then
    waiting.came[job.id] = nil
  else
    drop(waiting.shown[job.id] and K.queue(job.pool) or K.hidden(job.pool), job.id)
    waiting.shown[job.id] = nil
  end
end

-- A pending job comes into its line, or leaves it: behind its key's others, if it needs one.
local function join_line(job)
  local key = key_of(job)
  if key then return join_key(job, key) end
  add(K.queue(job.pool), rank(job), job.id)
  queued(job.pool, tonumber(job.run_at or job.created))
end

local function leave_line(job)
  local key = key_of(job)
  if key then return leave_key(job, key) end
  drop(K.queue(job.pool), job.id)
end

local function show_heads_of(line, key, waiting, many)
  local heads = heads_of(line, key, many)
  local function hide(id, score)
    add(K.hidden(line), text(score), id)
    queued(line, NEVER)
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
    if not waiting.shown[id] then
      add(K.queue(line), text(score), id)
      if not waiting.came[id] then drop(K.hidden(line), id) end
      queued(line, score % BAND)
    end
  end
end

-- The last word on every key that this operation has changed: what each line shows of it. A key that nobody holds and nobody
-- waits for leaves nothing behind.
function show_heads()
  local seen = touched
  touched = {}
  for key, share in pairs(seen) do
    if share.changed then
      local many, used = math.max(0, math.min(room(share), SHOWN_AT_MOST)), share.held > 0
      for line, waiting in pairs(share.lines) do
        if redis.call('EXISTS', K.waiters(line, key)) == 1 then
          show_heads_of(line, key, waiting, many)
          if waiting.stored ~= many then redis.call('HSET', K.share(key), '>' .. line, many) end
          used = true
        elseif waiting.stored then
          redis.call('HDEL', K.share(key), '>' .. line)
        end
      end
      if not used then
        redis.call('DEL', K.share(key))
      elseif share.limit ~= share.told then
        redis.call('HSET', K.share(key), 'limit', text(share.limit))
      end
    end
  end
end

-- Of a job that its line showed when the operation began: whether others have taken the last places at its key since.
local function has_just_filled(job)
  local key = job and key_of(job)
  local share = key and touched[key]
  return share and share.taken and room(share) <= 0 and share.lines[job.pool] and share.lines[job.pool].shown[job.id]
end

-- Whether a key has room for more jobs than the line showed of it: they come next, before what stands behind them in the line.
local function shows_more_later(job)
  local key = key_of(job)
  local share = key and touched[key]
  return share and room(share) > 0 and share.taken >= (share.lines[job.pool].stored or 0)
    and redis.call('EXISTS', K.waiters(job.pool, key)) == 1
end

-- A claim takes a place at the key; settle, give back and reap end it.
local function occupy(job)
  local key = key_of(job)
  if not key then return end
  local share = share_to_change(key)
  redis.call('HSET', K.holders(key), job.fence, job.id)
  share.held = share.held + 1
  share.taken = (share.taken or 0) + 1
end

local function free_place(key, fence)
  local share = share_to_change(key)
  share.held = share.held - redis.call('HDEL', K.holders(key), fence)
end

-- Its holder says that it has stopped, or its lease has ended.
local function vacate(job)
  local key = key_of(job)
  if key then free_place(key, job.fence) end
  job.vacated = true
end

-- A holder that was not asked holds its key until it has stopped.
local function linger(job)
  local key = key_of(job)
  if not key or job.vacated then return end
  local lease_until = redis.call('ZSCORE', K.running(), job.id) or now
  add(K.lingering(), lease_until, job.fence .. ' ' .. job.id .. ' ' .. key)
end

-- The holder of a job that was taken from it says that it has stopped. Says it again, and nothing changes.
local function stop_lingering(job, fence)
  local key = job and key_of(job)
  local member = key and fence .. ' ' .. job.id .. ' ' .. key
  if not member or not redis.call('ZSCORE', K.lingering(), member) then return end
  redis.call('ZREM', K.lingering(), member)
  free_place(key, fence)
end

-- Let go of the first holders, at most `limit`, that have not said so and whose leases have ended. Answers how many.
local function end_lingering(limit)
  local over = redis.call('ZRANGEBYSCORE', K.lingering(), '-inf', text(now), 'LIMIT', 0, limit)
  for _, member in ipairs(over) do
    local fence, key = string.match(member, '^(%d+) %S+ (.*)$')
    redis.call('ZREM', K.lingering(), member)
    free_place(key, fence)
  end
  return #over
end
