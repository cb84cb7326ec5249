-- The due triggers of a tenant with what is needed to plan them; of a disabled one, those whose instants are to be observed.
--
-- KEYS home   hash  the tenant's meta
-- ARGV skip   int   how many of the first to pass over
-- ARGV limit  int   how many at most
-- FLAGS no-writes
-- GIVES       {now, version, earliest visit past these or "", "1" if scheduling is disabled, "follow" if it is and some triggers are
--             not observed yet, from when on it runs again or 0,
--             calendars of these triggers: flat list of name, revision and data; names of calendars with more to be planned anew,
--             then for each: {trigger, JobKey, revision, next, definition, what it counts from or "", observed up to before or "",
--             its calendar or "", "since scheduler" if one came by that cannot read its zone or ""}}
-- FAILS       SCHEDULING_DISABLED

local it, trouble, step = gate()
if not it then return refuse('SCHEDULING_DISABLED', trouble, step) end

local key = it.disabled and K.observed() or K.triggers() -- no trigger of a disabled tenant moves
local due = redis.call('ZRANGEBYSCORE', key, '-inf', text(now), 'WITHSCORES', 'LIMIT', skip, limit)
local later = redis.call('ZRANGEBYSCORE', key, '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
later = math.min(later or math.huge, it.until_ or math.huge)
local rows, used, changed, any_observed = {}, {}, {}, redis.call('EXISTS', K.observed()) == 1

local function read_trigger(member, trigger, job_key)
  local revision, definition, anchor, planned, calendar, unread = unpack(redis.call('HMGET', K.schedule(job_key), 'revision', 'definition',
    'anchor:' .. trigger, 'next:' .. trigger, 'calendar:' .. trigger, 'unread:' .. trigger))
  if not revision then return end
  if calendar then used[calendar] = true end
  rows[#rows + 1] = {trigger, job_key, revision, planned or '', definition, anchor or '',
    any_observed and redis.call('ZSCORE', K.observed(), member) or '', calendar or '', unread or ''}
end

for at = 1, #due, 2 do
  local trigger, name = string.match(due[at], '^([^:]*):(.*)$')
  if trigger == '' then changed[#changed + 1] = name else read_trigger(due[at], trigger, name) end
end
return {text(now), text(read_clock()), later < math.huge and text(later) or '', it.disabled and (it.follow and 'follow' or '1') or '', text(it.resumed),
  calendars.told(used), changed, unpack(rows)}
