-- Make a job of a schedule by hand. It is no fire: the plan and the records stay as they are.
--
-- KEYS home     hash  the tenant's meta
-- ARGV job_key  text  which schedule
-- ARGV id       text  the job's id: sent again, it is the same job
-- ARGV instant  text  the planned instant it is for (epoch ms); empty: this moment
-- ARGV after    ms    how much later than now it is due
-- ARGV task     text  what to run
-- ARGV pool     text  where
-- ARGV by       text  who
-- ARGV reason   text  why
-- ARGV expected text  the revision that is run; empty: whichever
-- ARGV decided text   the trigger that must have decided on the instant already, so that it runs once; empty: none is asked
-- REST field value    of the job's row
-- GIVES         {id, news: {pool, due, version}, "1" if this call made it or ""}
-- FAILS         NOT_FOUND STALE_PLAN SCHEDULING_DISABLED

if redis.call('EXISTS', K.row(id)) == 1 then return {id, {}, ''} end
local revision = redis.call('HGET', K.schedule(job_key), 'revision')
if not revision then return refuse('NOT_FOUND', 'schedule ' .. job_key .. ' is not stored') end
if expected ~= '' and expected ~= revision then
  return refuse('STALE_PLAN', 'schedule ' .. job_key .. ' is at revision ' .. revision .. ', not ' .. expected)
end
local it, trouble, step = gate()
if not it then return switch.refusal(it, trouble, step) end
local owed_from = decided ~= '' and fires.decided(job_key, decided)
if owed_from and tonumber(instant) >= owed_from then
  return refuse('STALE_PLAN', 'instant ' .. instant .. ' of trigger ' .. decided .. ' of ' .. job_key
    .. ' is owed: a scheduler decides on it and on all from ' .. text(owed_from) .. ' on')
end
local closed = switch.refusal(it)
if closed then return closed end

local job = create(id, task, pool, now + after, {unpack(ARGV, FIRST)})
set(job, 'fire_time', instant == '' and text(now) or instant)
put_blob(job, 'reason', 'run by hand' .. (by == '' and '' or ' by ' .. by) .. (reason == '' and '' or ': ' .. reason))
save(job)
announce(job)
return {id, news(), '1'}
