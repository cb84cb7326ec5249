-- Record the planned instants of a disabled tenant's trigger that have passed: nothing fires, and the trigger stays where it is.
-- Any number of schedulers may try; one moves the observation on, the others are told that it has moved.
--
-- KEYS home       hash  the tenant's meta
-- ARGV job_key    text  which schedule
-- ARGV trigger    text  which of its triggers
-- ARGV revision   text  the revision it was worked out from
-- ARGV calendar   text  the revision of the trigger's calendar that it was worked out by; empty: it stands in none
-- ARGV observed   text  the instant that was next to be observed
-- ARGV following  text  the next one from now on; empty: there is none
-- ARGV scheduler  text  who observes
-- REST reason month first last count  what has passed
-- GIVES           {earliest visit or "", version}
-- FAILS           STALE_PLAN SCHEDULING_DISABLED

local it, trouble, step = gate()
if not it then return refuse('SCHEDULING_DISABLED', trouble, step) end
local member = trigger .. ':' .. job_key
local cursor = redis.call('ZSCORE', K.observed(), member)
local at_revision, named = unpack(redis.call('HMGET', K.schedule(job_key), 'revision', 'calendar:' .. trigger))
if not it.disabled or not cursor or text(cursor) ~= observed or at_revision ~= revision or calendars.revision_of(named) ~= calendar then
  return refuse('STALE_PLAN', 'trigger ' .. trigger .. ' of ' .. job_key .. ' is not to be observed at ' .. observed)
end
for at = FIRST, #ARGV, 5 do
  if tonumber(ARGV[at + 3]) > now then return refuse('STALE_PLAN', 'instant ' .. ARGV[at + 3] .. ' has not passed') end
end

for at = FIRST, #ARGV, 5 do fires.see(job_key, trigger, scheduler, unpack(ARGV, at, at + 4)) end
redis.call('ZADD', K.observed(), following == '' and text(OBSERVED_TO_THE_END) or following, member)
return {earliest_fire(), tick()}
