-- Store a calendar under its name. The same again changes nothing; another one is a new revision, and the triggers in it are
-- planned anew: what it excludes does not fire from here on, what it frees does if it is after now.
--
-- KEYS home      hash  the tenant's meta
-- ARGV name      text  which
-- ARGV data      text  packed
-- ARGV digest    text  of the data: equal digests are equal calendars
-- ARGV expected  text  the revision it replaces; empty: whichever
-- ARGV by        text  who
-- ARGV reason    text  why
-- GIVES          {revision, "new" or "changed" or "", "1" if triggers are left to be planned anew, earliest visit or "", version}
-- FAILS          STALE_PLAN

local key = K.calendar(name)
local revision, known = unpack(redis.call('HMGET', key, 'revision', 'digest'))
if expected ~= '' and expected ~= (revision or '0') then
  return refuse('STALE_PLAN', 'calendar ' .. name .. ' is at revision ' .. (revision or '0') .. ', not ' .. expected)
end
if known == digest then return {revision, '', '', earliest_fire(), text(read_clock())} end

-- One count for all calendars of the tenant: no revision comes again when a name is deleted and stored anew.
local following = text(redis.call('HINCRBY', K.meta(), 'calendars', 1))
redis.call('HSET', key, 'revision', following, 'digest', digest, 'data', data, 'stored', text(now), 'by', by, 'reason', reason)
redis.call('ZADD', K.calendars(), 0, name)
local left = calendars.plan_anew(name, following)
return {following, revision and 'changed' or 'new', left and '1' or '', earliest_fire(), tick()}
