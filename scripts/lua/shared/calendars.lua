-- Calendars by name: times that triggers leave out. Each plan is made by one revision of a calendar, and the script that commits
-- it compares: what has been excluded since does not fire.

local calendars = {}

local PLANNED_AT_ONCE = 500

-- The revision of the calendar that a trigger stands in; empty if it stands in none.
function calendars.revision_of(calendar)
  return calendar and redis.call('HGET', K.calendar(calendar), 'revision') or ''
end

-- What callers need of the calendars whose names are the fields of `names`: a flat list of name, revision and data.
function calendars.told(names)
  local found = {}
  for name in pairs(names) do
    local revision, data = unpack(redis.call('HMGET', K.calendar(name), 'revision', 'data'))
    if revision then found[#found + 1], found[#found + 2], found[#found + 3] = name, revision, data end
  end
  return found
end

-- The schedules of the first triggers in it.
function calendars.users(name, many)
  local found, seen = {}, {}
  for _, member in ipairs(redis.call('ZRANGE', K.planned_by(name), 0, many - 1)) do
    local job_key = string.match(member, '^[^:]+:(.*)$')
    if not seen[job_key] then found[#found + 1] = job_key end
    seen[job_key] = true
  end
  table.sort(found)
  return found
end

function calendars.join(job_key, trigger, calendar, revision)
  redis.call('HSET', K.schedule(job_key), 'calendar:' .. trigger, calendar)
  redis.call('ZADD', K.planned_by(calendar), revision, trigger .. ':' .. job_key)
end

function calendars.leave(job_key, trigger, calendar)
  redis.call('ZREM', K.planned_by(calendar), trigger .. ':' .. job_key)
end

-- A trigger is to be planned anew from an instant on: it is visited, and finds its next one. What is due of it already stays due.
local function plan_from(from, trigger, job_key, disabled)
  local key, member = K.schedule(job_key), trigger .. ':' .. job_key
  local planned, paused = unpack(redis.call('HMGET', key, 'next:' .. trigger, 'paused'))
  if (tonumber(planned) or math.huge) > from then
    redis.call('HSET', key, 'next:' .. trigger, text(from))
    if not paused then redis.call('ZADD', K.triggers(), text(from), member) end
  end
  local seen = redis.call('ZSCORE', K.observed(), member)
  if (seen and tonumber(seen) > from) or (disabled and not seen and not paused) then
    redis.call('ZADD', K.observed(), text(seen and from or math.min(tonumber(planned) or from, from)), member)
  end
end

-- Of a calendar that has changed: have the first triggers that were planned by an earlier revision planned anew. While some are
-- left, the calendar itself stands among the due triggers, so that a scheduler goes on when the caller does not. Answers whether
-- some are left.
function calendars.plan_anew(calendar, revision)
  local key, it = K.planned_by(calendar), gate()
  local disabled, planned = not it or it.disabled, {}
  local from = math.max(now, clock_ms()) + 1 -- after all that has its record, also when the clock went back
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '-inf', '(' .. revision, 'LIMIT', 0, PLANNED_AT_ONCE)) do
    local trigger, job_key = string.match(member, '^([^:]+):(.*)$')
    plan_from(from, trigger, job_key, disabled)
    planned[#planned + 1], planned[#planned + 2] = revision, member
  end
  send('ZADD', key, planned)
  local left = redis.call('ZCOUNT', key, '-inf', '(' .. revision) > 0
  for _, visits in ipairs({K.triggers(), K.observed()}) do
    if not left then
      redis.call('ZREM', visits, ':' .. calendar)
    elseif disabled or visits == K.triggers() then
      redis.call('ZADD', visits, text(now), ':' .. calendar)
    end
  end
  return left
end
