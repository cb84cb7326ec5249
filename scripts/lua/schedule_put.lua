-- Store a schedule under its JobKey. The same definition again changes nothing; another one is a new revision, and instants
-- already due under the old one are recorded as passed over, never fired. The first instants must lie ahead, by this clock and
-- of what has fired: the call is refused if one has passed since it was computed.
--
-- KEYS home        hash  the tenant's meta
-- ARGV job_key     text  which schedule
-- ARGV definition  text  packed
-- ARGV digest      text  of the definition: equal digests are equal definitions
-- ARGV expected    text  the revision it replaces; empty: whichever
-- ARGV seen        text  the revision from which the rest was worked out; 0: nothing was stored
-- ARGV declared    text  "1": code declares it; empty: somebody puts it. What somebody has put in place of what code declares
--                        stays, whatever code declares since
-- ARGV enabled     text  "1": it is not paused from now on; "0": it is; empty: as it was
-- ARGV by          text  who
-- ARGV reason      text  why
-- ARGV group       text  of its JobKey: in a paused group it is stored paused, unless it is enabled
-- ARGV month       text  YYYYMM of now in UTC
-- ARGV triggers    int   how many triggers it has
-- ITEMS            of each trigger its name, its first instant (epoch ms; empty: none), what it counts from (epoch ms; empty:
--                  nothing), its calendar and the revision of that (empty: it stands in none); then what is due of the old ones,
--                  as `read_due` reads it
-- GIVES            {revision, "new" or "changed" or "", earliest fire or "", version}
-- FAILS            STALE_PLAN

local key = K.schedule(job_key)
local revision, known, code, overridden, paused =
  unpack(redis.call('HMGET', key, 'revision', 'digest', 'code', 'override', 'paused'))
revision = tonumber(revision or 0)
local turned = known and enabled ~= '' and (enabled == '1') == (paused and true or false)

-- What the code declares is kept beside what somebody put in its place, which goes on until it is put back.
local function remember_code()
  if declared == '1' then
    redis.call('HSET', key, 'code', digest, 'declared', definition)
    redis.call('HDEL', key, 'override')
  elseif code == digest then
    redis.call('HDEL', key, 'override')
  elseif code then
    redis.call('HSET', key, 'override', '1')
  end
end

if expected ~= '' and tonumber(expected) ~= revision then
  return refuse('STALE_PLAN', 'schedule ' .. job_key .. ' is at revision ' .. text(revision) .. ', not ' .. expected)
end
if known == digest and not turned then
  if (declared == '1' and (code ~= digest or overridden)) or (code == digest and overridden) then remember_code() end
  return {text(revision), '', earliest_fire(), text(read_clock())}
end
if declared == '1' and known and (overridden or not code) then
  if code ~= digest then redis.call('HSET', key, 'code', digest, 'declared', definition, 'override', '1') end
  return {text(revision), '', earliest_fire(), text(read_clock())}
end
if tonumber(seen) ~= revision then
  return refuse('STALE_PLAN', 'schedule ' .. job_key .. ' is at revision ' .. text(revision) .. ', and was at ' .. seen)
end

-- Instants that lie ahead only because the clock has stepped back may have their records.
local before, earliest = revision, math.max(now, clock_ms())
if not known then
  local _, top, latest = deletions.last()
  before, earliest = top, math.max(now, latest)
end
local old = redis.call('HGETALL', key)
local rest = FIRST + 5 * triggers
for at = FIRST, rest - 1, 5 do
  local first = tonumber(ARGV[at + 1])
  if first and first <= earliest then
    return refuse('STALE_PLAN', 'trigger ' .. ARGV[at] .. ' of ' .. job_key .. ' would first fire at ' .. ARGV[at + 1]
      .. ', which is not after now (' .. text(now) .. ') and all that has passed before (' .. text(earliest) .. ')')
  end
  if calendars.revision_of(ARGV[at + 3] ~= '' and ARGV[at + 3]) ~= ARGV[at + 4] then
    return refuse('STALE_PLAN', 'calendar ' .. ARGV[at + 3] .. ' of ' .. job_key .. ' has changed since it was worked out')
  end
end
local due = read_due(ARGV, rest)
local untold = not_all_told(job_key, old, due)
if untold then return refuse('STALE_PLAN', untold) end

local function pause_of()
  if enabled == '1' then return nil end
  if enabled == '0' and not paused then return text(now) .. '\n' .. by .. '\n' .. reason end
  return paused or (not known and redis.call('HGET', K.groups(), group))
end

local PLANNED = {next = true, anchor = true, pace = true, calendar = true, unread = true} -- what is planned anew
paused = pause_of()
for at = 1, #old, 2 do
  local kind, trigger = string.match(old[at], '^(%l+):(.*)$')
  if kind == 'next' then
    unplan(job_key, trigger)
    if tonumber(old[at + 1]) <= now then pass_over(job_key, trigger, due[trigger]) end
  end
  if kind == 'calendar' then calendars.leave(job_key, trigger, old[at + 1]) end
  if PLANNED[kind] then redis.call('HDEL', key, old[at]) end
end
redis.call('HSET', key, 'revision', text(before + 1), 'digest', digest, 'definition', definition, 'stored', text(now))
if paused then redis.call('HSET', key, 'paused', paused) else redis.call('HDEL', key, 'paused') end
if known == digest then
  keep_revision(job_key, before + 1, paused and 'pause' or 'resume', by, reason, '')
else
  remember_code()
  keep_revision(job_key, before + 1, 'put', by, reason, definition)
end
redis.call('ZADD', K.schedules(), 0, job_key)
local stays = {}
for at = FIRST, rest - 1, 5 do
  local trigger, first, anchor, calendar, by_revision = unpack(ARGV, at, at + 4)
  stays[trigger] = true
  plan_next(job_key, trigger, first, paused)
  if anchor ~= '' then redis.call('HSET', key, 'anchor:' .. trigger, anchor) end
  if calendar ~= '' then calendars.join(job_key, trigger, calendar, by_revision) end
end
for _, trigger in ipairs(redis.call('SMEMBERS', K.recorded(job_key))) do
  if not stays[trigger] then fires.let_go(job_key, trigger, month) end
end
return {text(before + 1), known and 'changed' or 'new', earliest_fire(), tick()}
