-- Store a schedule under its JobKey. The same definition again changes nothing; another one is a new revision, and an instant
-- already due under the old one is recorded as superseded, never fired. The first instants must lie ahead, by this clock and
-- of what has fired: the call is refused if one has passed since it was computed.
--
-- KEYS home        hash  the tenant's meta
-- ARGV job_key     text  which schedule
-- ARGV definition  text  packed
-- ARGV digest      text  of the definition: equal digests are equal definitions
-- ARGV expected    text  the revision it replaces; empty: whichever
-- ARGV month       text  YYYYMM in UTC, where records of this moment go
-- ARGV declared    text  "1": code declares it; empty: somebody puts it
-- REST trigger next      the triggers and their first instants (epoch ms)
-- GIVES            {revision, "new" or "changed" or "", earliest fire or "", version}
-- FAILS            STALE_PLAN

local key = K.schedule(job_key)
local revision, known, marked = unpack(redis.call('HMGET', key, 'revision', 'digest', 'declared'))
revision = tonumber(revision or 0)

if known == digest then
  if declared == '1' and not marked then redis.call('HSET', key, 'declared', '1') end
  return {text(revision), '', earliest_fire(), text(read_clock())}
end
if expected ~= '' and tonumber(expected) ~= revision then
  return refuse('STALE_PLAN', 'schedule ' .. job_key .. ' is at revision ' .. text(revision) .. ', not ' .. expected)
end

local before, earliest = revision, now
if not known then
  local _, top, latest = last_deletion()
  before, earliest = top, math.max(now, latest)
end
local last = {}
local old = redis.call('HGETALL', key)
for at = 1, #old, 2 do
  local trigger = string.match(old[at], '^last:(.*)$')
  if trigger then last[trigger] = tonumber(old[at + 1]) end
end
for at = FIRST, #ARGV, 2 do
  local first = tonumber(ARGV[at + 1])
  if first <= earliest or first <= (last[ARGV[at]] or 0) then
    return refuse('STALE_PLAN', 'trigger ' .. ARGV[at] .. ' of ' .. job_key .. ' would first fire at ' .. ARGV[at + 1]
      .. ', which is not after now (' .. text(now) .. '), its last fire and the last deletion')
  end
end

for at = 1, #old, 2 do
  local trigger = string.match(old[at], '^next:(.*)$')
  if trigger then
    redis.call('ZREM', K.triggers(), trigger .. ':' .. job_key)
    redis.call('HDEL', key, old[at])
    if tonumber(old[at + 1]) <= now then
      record_fire(job_key, trigger, month, {old[at + 1], 'skipped', 'superseded', '', text(now), '', '', '1'})
    end
  end
end
redis.call('HSET', key, 'revision', text(before + 1), 'digest', digest, 'definition', definition, 'stored', text(now))
if declared == '1' then redis.call('HSET', key, 'declared', '1') else redis.call('HDEL', key, 'declared') end
redis.call('ZADD', K.schedules(), 0, job_key)
for at = FIRST, #ARGV, 2 do
  redis.call('HSET', key, 'next:' .. ARGV[at], ARGV[at + 1])
  redis.call('ZADD', K.triggers(), ARGV[at + 1], ARGV[at] .. ':' .. job_key)
end
return {text(before + 1), known and 'changed' or 'new', earliest_fire(), tick()}
