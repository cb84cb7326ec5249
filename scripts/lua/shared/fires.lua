-- Fire records: one list for each trigger and UTC month, each record
-- "instant outcome reason job at scheduler until count", its empty parts written "-".

local KEEP_MONTHS, KEEP_SECONDS = 13, 400 * 86400

local fires = {}

local function months_before(month, many)
  local count = string.sub(month, 1, 4) * 12 + string.sub(month, 5) - 1 - many
  return string.format('%04d%02d', math.floor(count / 12), count % 12 + 1)
end

-- The first record of a month lets the one go that is thirteen months older.
function fires.record(job_key, trigger, month, parts)
  for at, part in ipairs(parts) do
    if part == '' then parts[at] = '-' end
  end
  local key = K.fires(month, trigger, job_key)
  local is_new = redis.call('RPUSH', key, table.concat(parts, ' ')) == 1
  if is_new then
    redis.call('UNLINK', K.fires(months_before(month, KEEP_MONTHS), trigger, job_key))
    redis.call('SADD', K.recorded(job_key), trigger)
    redis.call('PERSIST', K.recorded(job_key))
  end
  books.written(key, is_new)
end

-- Nobody writes to the records of a trigger that has gone: they go by themselves when they would have gone. An expiry that is
-- lost costs memory, and nothing else depends on it.
function fires.let_go(job_key, trigger, month)
  for back = 0, KEEP_MONTHS - 1 do
    redis.call('EXPIRE', K.fires(months_before(month, back), trigger, job_key), KEEP_SECONDS, 'NX')
  end
end

-- Instants that do not fire: `count` of them from `first` to `last`.
function fires.pass(job_key, trigger, scheduler, reason, month, first, last, count)
  fires.record(job_key, trigger, month,
    {first, 'skipped', reason, '', text(now), scheduler, count == '1' and '' or last, count})
  if reason ~= 'unobserved' then log.skip(job_key, trigger, reason, month, first, last, count) end
end

local function grown(job_key, trigger, reason, month, last, count)
  local from, why, by, many =
    string.match(books.newest(K.fires(month, trigger, job_key)), '^(%d+) skipped (%S+) (%S+ %S+ %S+) %S+ (%d+)$')
  if why == reason and books.same_minute(from, last) then
    return table.concat({from, 'skipped', why, by, last, text(many + count)}, ' ')
  end
end

-- The same of instants that are seen to pass. Those of one minute are one record and one entry: a trigger of seconds that nobody
-- lets fire has one a minute, not one for each. (Where two triggers of a schedule take turns, each instant has its own.)
function fires.see(job_key, trigger, scheduler, reason, month, first, last, count)
  local record = grown(job_key, trigger, reason, month, last, count)
  local entry = record and log.grown(job_key, trigger, reason, month, last, count)
  if not entry then return fires.pass(job_key, trigger, scheduler, reason, month, first, last, count) end
  books.grow(K.fires(month, trigger, job_key), record)
  books.grow(K.entries(month, job_key), entry)
end

-- What is due of each trigger and is passed over, as callers work it out: from `at` on in the arguments, for each trigger its
-- name, its planned and its following instant, the revision of its calendar, how the switch stood for it (see `switch_for`), and
-- how many stretches; for each of those reason month first last count.
local function read_due(arguments, at)
  local due = {}
  while at <= #arguments do
    local trigger, planned, following, calendar, switch, many = unpack(arguments, at, at + 5)
    local told = {planned = planned, following = following, calendar = calendar, switch = switch}
    at = at + 6
    for nth = 1, many do
      told[nth] = {unpack(arguments, at, at + 4)}
      at = at + 5
    end
    due[trigger] = told
  end
  return due
end

-- How the switch stands for a trigger, in one text: "disabled" or from when on scheduling runs again, and up to before when the
-- trigger was observed.
local function switch_for(it, job_key, trigger)
  local cursor = redis.call('ZSCORE', K.observed(), trigger .. ':' .. job_key)
  return (it.disabled and 'disabled' or text(it.resumed)) .. ' ' .. (cursor and text(cursor) or '')
end

-- Nil, or why the schedule's due instants are not those that `due` was worked out for.
local function not_all_told(job_key, fields, due)
  local named, it = {}, gate() or {disabled = true}
  for at = 1, #fields, 2 do
    local trigger = string.match(fields[at], '^calendar:(.*)$')
    if trigger then named[trigger] = fields[at + 1] end
  end
  for at = 1, #fields, 2 do
    local trigger = string.match(fields[at], '^next:(.*)$')
    if trigger and tonumber(fields[at + 1]) <= now then
      local told = due[trigger]
      if not told or told.planned ~= fields[at + 1] or (tonumber(told.following) or now + 1) <= now then
        return 'trigger ' .. trigger .. ' of ' .. job_key .. ' is due at ' .. fields[at + 1]
          .. ', and the change was prepared for ' .. (told and told.planned or 'none')
      end
      local last = told[#told] and told[#told][4]
      if last and tonumber(last) > now then
        return 'instant ' .. last .. ' of trigger ' .. trigger .. ' of ' .. job_key .. ' has not passed, the clock says ' .. text(now)
      end
      if told.switch ~= switch_for(it, job_key, trigger) then
        return 'trigger ' .. trigger .. ' of ' .. job_key .. ' was observed, or the switch has changed, since the change was prepared'
      end
      if told.calendar ~= calendars.revision_of(named[trigger]) then
        return 'the calendar ' .. (named[trigger] or 'of ' .. trigger) .. ' has changed since the change was prepared'
      end
    end
  end
end

local function pass_over(job_key, trigger, told)
  for _, stretch in ipairs(told) do fires.pass(job_key, trigger, '', unpack(stretch)) end
end

-- Up to before when it is decided what becomes of a trigger's planned instants; nil: of all of them.
function fires.decided(job_key, trigger)
  local planned = tonumber(redis.call('HGET', K.schedule(job_key), 'next:' .. trigger))
  return planned and math.max(planned, tonumber(redis.call('ZSCORE', K.observed(), trigger .. ':' .. job_key) or planned))
end

-- A trigger's next instant, which is not due, past what was observed of it before the clock stepped back; empty: all was.
local function after_observed(job_key, trigger, planned)
  local cursor = tonumber(redis.call('ZSCORE', K.observed(), trigger .. ':' .. job_key) or planned)
  if cursor == OBSERVED_TO_THE_END then return '' end
  return text(math.max(cursor, tonumber(planned)))
end

-- Plan a trigger's next instant; empty: there is none. One of a paused schedule is known and not waited for. `it` is the gate,
-- if that is known.
local function plan_next(job_key, trigger, following, paused, it)
  local member = trigger .. ':' .. job_key
  it = it or gate()
  if following == '' then
    redis.call('HDEL', K.schedule(job_key), 'next:' .. trigger)
  else
    redis.call('HSET', K.schedule(job_key), 'next:' .. trigger, following)
  end
  redis.call('ZREM', K.observed(), member)
  if following == '' or paused then
    redis.call('ZREM', K.triggers(), member)
  else
    redis.call('ZADD', K.triggers(), following, member)
    if not it or it.disabled then redis.call('ZADD', K.observed(), following, member) end
  end
end

local function unplan(job_key, trigger)
  redis.call('ZREM', K.triggers(), trigger .. ':' .. job_key)
  redis.call('ZREM', K.observed(), trigger .. ':' .. job_key)
end

-- What a schedule was: by revision, when and how it came about, by whom and why, and its definition (empty: as before).
local REVISIONS = 100

local function keep_revision(job_key, revision, verb, by, reason, definition)
  local key = K.revisions(job_key)
  redis.call('HSET', key, text(revision), table.concat({text(now), verb, by, string.gsub(reason, '\n', ' '), definition}, '\n'))
  redis.call('HDEL', key, text(revision - REVISIONS))
  redis.call('PERSIST', key) -- what was deleted is stored anew
end

-- What a tenant remembers of the schedules it has deleted: the token of the last deletion, the highest revision and the latest
-- instant of them all. A name that is stored anew goes on from there, so no plan and no record of the old one fits the new.
local deletions = {}

function deletions.last()
  local noted = redis.call('HGET', K.meta(), 'deletion') or ''
  local token, revision, instant = string.match(noted, '^(%S+) (%d+) (%d+)$')
  return token, tonumber(revision or 0), tonumber(instant or 0)
end

function deletions.note(token, revision, instant)
  redis.call('HSET', K.meta(), 'deletion', token .. ' ' .. text(revision) .. ' ' .. text(instant))
end
