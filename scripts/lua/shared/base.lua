-- What every operation stands on: whose keys, what time it is, the tenant clock, and writes that are put off.
--
-- Writes to the shared sets and counters are gathered and sent once at the end of the operation (`flush`): fewer calls for
-- a batch, and a refusal, which returns before anything is flushed, leaves nothing behind. Of a member that is added and
-- dropped in one operation the last word counts.

local entered, namespace, tenant, now, now_text, now_us, clock, ticked, born
local MINUTE_MS = 60000
local counts, figures, minutes, places, wanted, touched, gated, gate_cache, lines_listed
local last_at, last_of, last_numbers -- see `happened`
local NEVER = 4398046511103 -- due when something else happens, not at an instant: 2^42 - 1
local show_heads -- of concurrency keys: see keys.lua
local forget_notices -- see notices.lua

local function text(number)
  if number ~= now then return string.format('%.0f', number) end
  now_text = now_text or string.format('%.0f', now) -- what most rows and sets are told
  return now_text
end

local function enter(home, virtual)
  if home ~= entered then
    entered, base = home, string.sub(home, 1, -5)
    namespace, tenant = string.match(base, '^(.-):{(.-)}:$')
  end
  if virtual == '' then
    local time = redis.call('TIME')
    now_us = time[1] * 1000000 + time[2]
    now = math.floor(now_us / 1000)
  else
    now = tonumber(virtual)
    now_us = now * 1000
  end
  now_text, clock, ticked, born = nil, nil, false, nil
  counts, figures, minutes, places, wanted, touched = {}, {}, {}, {}, {}, {}
  last_at, gated, gate_cache, lines_listed = nil, nil, {}, {}
end

-- A time as callers write it: empty is now, "+N" is N ms from now, else epoch ms. A past instant is now: what is due since then
-- is due, and before nobody who waits already.
local function instant(when)
  if when == '' then return now end
  if string.sub(when, 1, 1) == '+' then return now + tonumber(string.sub(when, 2)) end
  return math.max(now, tonumber(when))
end

-- The tenant clock: never the same number twice, never a smaller one, and close to the server's microseconds. Its first
-- value stays beside it, so that a tenant whose keys were lost is known from what it was before.
local function read_meta(...)
  local stored = redis.call('HMGET', K.meta(), 'clock', 'gates', ...)
  clock = clock or tonumber(stored[1] or 0)
  gated = stored[2] -- see gates.lua
  return unpack(stored, 3, 2 + select('#', ...))
end

local function read_clock()
  if not clock then read_meta() end
  return clock
end

-- The latest millisecond that the tenant has lived through, also when the server's clock has stepped back since.
local function clock_ms()
  return math.floor(read_clock() / 1000)
end

local function tick()
  local last = read_clock()
  clock = math.max(last + 1, now_us)
  ticked = true
  if last == 0 then born = clock end
  return text(clock)
end

local function count(task, state, change)
  local field = task .. '|' .. state
  counts[field] = (counts[field] or 0) + change
end

-- As `count`, of what is counted apart: see the key table.
local function figure(name, of, change)
  local field = name .. '|' .. of
  figures[field] = (figures[field] or 0) + change
end

-- What is counted of a pool or a task in the minute in which `at` is.
local function numbers_of(at, of)
  local minute = (at - at % MINUTE_MS) / MINUTE_MS
  minutes[minute] = minutes[minute] or {}
  minutes[minute][of] = minutes[minute][of] or {}
  return minutes[minute][of]
end

-- A number in the hash of that minute changes: see `hour.lua`. The jobs of a batch are mostly alike, so the last place is kept.
local function happened(at, of, name, change)
  if at ~= last_at or of ~= last_of then
    last_at, last_of, last_numbers = at, of, numbers_of(at, of)
  end
  last_numbers[name] = (last_numbers[name] or 0) + change
end

local function add(key, score, member)
  local members = places[key] or {}
  members[member] = score
  places[key] = members
end

local function drop(key, member)
  add(key, false, member)
end

-- Whether this operation has taken it out.
local function is_dropped(key, member)
  return places[key] ~= nil and places[key][member] == false
end

-- A job that can be claimed from `due` on came into its pool's queue: see `news`.
local function queued(pool, due)
  wanted[pool] = math.min(wanted[pool] or due, due)
end

local SLICE = 5000 -- Lua hands over fewer than 8,000 values at once

local function send(command, key, values)
  for at = 1, #values, SLICE do
    redis.call(command, key, unpack(values, at, math.min(at + SLICE - 1, #values)))
  end
end

-- 61 hashes take turns to hold a minute each. One that still holds another minute, of an hour ago or of a clock that went
-- back since, begins anew; what corrects a minute that is no longer held is dropped. The time to live only clears up after a
-- tenant that rests.
local SLOTS, SLOT_MS = 61, 3720000

local function write_minute(minute, named)
  local key = K.minute(minute % SLOTS)
  if redis.call('HGET', key, 'm') ~= text(minute) then
    if minute ~= math.floor(now / MINUTE_MS) then return end
    redis.call('DEL', key)
    redis.call('HSET', key, 'm', text(minute))
    redis.call('PEXPIRE', key, SLOT_MS)
  end
  for of, changes in pairs(named) do
    for name, change in pairs(changes) do
      if change ~= 0 then redis.call('HINCRBY', key, name .. '|' .. of, change) end
    end
  end
end

local function place(key, members)
  local only, at = next(members)
  if not next(members, only) then -- as in most operations on one job
    if at then redis.call('ZADD', key, at, only) else redis.call('ZREM', key, only) end
    return
  end
  local added, dropped = {}, {}
  for member, score in pairs(members) do
    if score then
      added[#added + 1], added[#added + 2] = score, member
    else
      dropped[#dropped + 1] = member
    end
  end
  send('ZREM', key, dropped)
  send('ZADD', key, added)
end

local function add_up(key, fields)
  for field, change in pairs(fields) do
    if change ~= 0 and redis.call('HINCRBY', key, field, change) == 0 then redis.call('HDEL', key, field) end
  end
end

local function flush()
  if next(touched) then show_heads() end
  for key, members in pairs(places) do place(key, members) end
  if places[K.stopped('dead')] then forget_notices() end
  if next(counts) then add_up(K.counts(), counts) end
  if next(figures) then add_up(K.figures(), figures) end
  for minute, named in pairs(minutes) do write_minute(minute, named) end
  if ticked then redis.call('HSET', K.meta(), 'clock', text(clock)) end
  if born then redis.call('HSET', K.meta(), 'born', text(born)) end
end

local function run(body, KEYS, ARGV)
  enter(KEYS[1], ARGV[1])
  local reply = body(KEYS, ARGV)
  if type(reply) ~= 'table' or not reply.err then flush() end
  return reply
end

-- `step` is what to do about it, if that is more than the code's own next step.
local function refuse(code, sentence, step)
  return redis.error_reply(code .. ' ' .. sentence .. (step and '; next: ' .. step or ''))
end
