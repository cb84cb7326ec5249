-- What every operation stands on: whose keys, what time it is, the tenant clock, and writes that are put off.
--
-- Writes to the shared sets and counters are gathered and sent once at the end of the operation (`flush`): fewer calls for
-- a batch, and a refusal, which returns before anything is flushed, leaves nothing behind. Of a member that is added and
-- dropped in one operation the last word counts.

local namespace, tenant, now, now_us, clock, ticked, born
local counts, places, wanted

local function text(number)
  return string.format('%.0f', number)
end

local function enter(home, virtual)
  base = string.sub(home, 1, -5)
  namespace, tenant = string.match(base, '^(.-):{(.-)}:$')
  if virtual == '' then
    local time = redis.call('TIME')
    now_us = time[1] * 1000000 + time[2]
    now = math.floor(now_us / 1000)
  else
    now = tonumber(virtual)
    now_us = now * 1000
  end
  clock, ticked, born = nil, false, nil
  counts, places, wanted = {}, {}, {}
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
local function read_clock()
  clock = clock or tonumber(redis.call('HGET', K.meta(), 'clock') or 0)
  return clock
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

local function add(key, score, member)
  local members = places[key] or {}
  members[member] = score
  places[key] = members
end

local function drop(key, member)
  add(key, false, member)
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

local function flush()
  for key, members in pairs(places) do
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
  for field, change in pairs(counts) do
    if change ~= 0 and redis.call('HINCRBY', K.counts(), field, change) == 0 then
      redis.call('HDEL', K.counts(), field)
    end
  end
  if ticked then redis.call('HSET', K.meta(), 'clock', text(clock)) end
  if born then redis.call('HSET', K.meta(), 'born', text(born)) end
end

local function run(body, KEYS, ARGV)
  enter(KEYS[1], ARGV[1])
  local reply = body(KEYS, ARGV)
  if type(reply) ~= 'table' or not reply.err then flush() end
  return reply
end

local function refuse(code, sentence)
  return redis.error_reply(code .. ' ' .. sentence)
end
