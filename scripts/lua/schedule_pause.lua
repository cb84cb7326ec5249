-- Pause a schedule, or resume it. Nothing fires of what is planned in between: it is recorded as passed over, of what is due now by
-- this call and of the time of the pause by the one that ends it. A schedule that is as it is asked for stays so.
--
-- KEYS home      hash  the tenant's meta
-- ARGV job_key   text  which schedule
-- ARGV pause     text  "1": pause it; empty: resume it
-- ARGV by        text  who
-- ARGV reason    text  why
-- ARGV expected  text  the revision that is changed; empty: whichever
-- ITEMS          what is due, as `read_due` reads it
-- GIVES          {revision, "1" if it has changed, earliest visit or "", version}
-- FAILS          NOT_FOUND STALE_PLAN

local key = K.schedule(job_key)
local revision, paused = unpack(redis.call('HMGET', key, 'revision', 'paused'))
if not revision then return refuse('NOT_FOUND', 'schedule ' .. job_key .. ' is not stored') end
if expected ~= '' and expected ~= revision then
  return refuse('STALE_PLAN', 'schedule ' .. job_key .. ' is at revision ' .. revision .. ', not ' .. expected)
end
if (pause == '1') == (paused and true or false) then return {revision, '', earliest_fire(), text(read_clock())} end
local fields, due = redis.call('HGETALL', key), read_due(ARGV, FIRST)
local untold = not_all_told(job_key, fields, due)
if untold then return refuse('STALE_PLAN', untold) end

revision = text(revision + 1)
redis.call('HSET', key, 'revision', revision)
if pause == '1' then
  redis.call('HSET', key, 'paused', text(now) .. '\n' .. by .. '\n' .. reason)
else
  redis.call('HDEL', key, 'paused')
end
keep_revision(job_key, revision, pause == '1' and 'pause' or 'resume', by, reason, '')
for at = 1, #fields, 2 do
  local trigger = string.match(fields[at], '^next:(.*)$')
  if trigger then
    local told = tonumber(fields[at + 1]) <= now and due[trigger]
    if told then pass_over(job_key, trigger, told) end
    redis.call('HDEL', key, 'unread:' .. trigger)
    plan_next(job_key, trigger, told and told.following or after_observed(job_key, trigger, fields[at + 1]), pause == '1')
  end
end
return {revision, '1', earliest_fire(), tick()}
