-- Fire one planned instant of a trigger: compare-and-set of its next fire time, the fire record and the job, together.
-- Any number of schedulers may try; one moves the trigger, the others are told the plan is stale.
--
-- KEYS home       hash  the tenant's meta
-- ARGV job_key    text  which schedule
-- ARGV trigger    text  which of its triggers
-- ARGV revision   text  the revision the plan was made from
-- ARGV planned    ms    the next fire time the plan was made from
-- ARGV instant    ms    the instant that fires: `planned`, or the newest due one
-- ARGV following  text  the next fire time from now on; empty: there is none
-- ARGV passed     int   how many planned instants from `planned` to before `instant` are coalesced into it
-- ARGV passed_to  text  the last of them
-- ARGV month      text  YYYYMM of `instant` in UTC
-- ARGV scheduler  text  who fires
-- ARGV id         text  the job's id, computed from tenant, JobKey, trigger and instant
-- ARGV task       text  what to run
-- ARGV pool       text  where
-- REST field value      of the job's row
-- GIVES           {job id, news: {pool, due, version}, earliest fire or "", version}
-- FAILS           NOT_FOUND STALE_PLAN BAD_INPUT

local key = K.schedule(job_key)
local at_revision, next_fire, last_fire =
  unpack(redis.call('HMGET', key, 'revision', 'next:' .. trigger, 'last:' .. trigger))
if not at_revision then return refuse('NOT_FOUND', 'schedule ' .. job_key .. ' is not stored') end

if last_fire == text(instant) and next_fire ~= text(planned) and redis.call('EXISTS', K.row(id)) == 1 then
  return {id, {}, earliest_fire(), text(read_clock())}
end
if at_revision ~= revision or tonumber(next_fire or -1) ~= planned then
  return refuse('STALE_PLAN', 'trigger ' .. trigger .. ' of ' .. job_key .. ' is at revision ' .. at_revision
    .. ' with next fire ' .. (next_fire or 'none') .. ', the plan was for ' .. revision .. ' and ' .. text(planned))
end
if instant > now or instant < planned or (following ~= '' and tonumber(following) <= instant) then
  return refuse('BAD_INPUT', 'fire of ' .. job_key .. ' at ' .. text(instant) .. ' refused: not due, or the next one not later')
end

local job = create(id, task, pool, now, {unpack(ARGV, FIRST)})
announce(job)
if passed > 0 then
  record_fire(job_key, trigger, month, {text(planned), 'skipped', 'coalesced', '', text(now), scheduler, passed_to, text(passed)})
end
record_fire(job_key, trigger, month, {text(instant), 'fired', '', id, text(now), scheduler, '', '1'})
redis.call('HSET', key, 'last:' .. trigger, text(instant))
local member = trigger .. ':' .. job_key
if following == '' then
  redis.call('HDEL', key, 'next:' .. trigger)
  redis.call('ZREM', K.triggers(), member)
else
  redis.call('HSET', key, 'next:' .. trigger, following)
  redis.call('ZADD', K.triggers(), following, member)
end
return {id, news(), earliest_fire(), tick()}
