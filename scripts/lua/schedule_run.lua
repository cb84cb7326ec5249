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
-- REST field value    of the job's row
-- GIVES         {id, news: {pool, due, version}, "1" if this call made it or ""}
-- FAILS         NOT_FOUND SCHEDULING_DISABLED

if redis.call('EXISTS', K.row(id)) == 1 then return {id, {}, ''} end
if redis.call('EXISTS', K.schedule(job_key)) == 0 then return refuse('NOT_FOUND', 'schedule ' .. job_key .. ' is not stored') end
local it, trouble = gate()
if not it then return refuse('SCHEDULING_DISABLED', trouble) end
if it.disabled then return refuse('SCHEDULING_DISABLED', 'scheduling of tenant ' .. tenant .. ' is disabled') end

local job = create(id, task, pool, now + after, {unpack(ARGV, FIRST)})
set(job, 'fire_time', instant == '' and text(now) or instant)
put_blob(job, 'reason', by == '' and 'run by hand' or 'run by hand by ' .. by)
save(job)
announce(job)
return {id, news(), '1'}
