-- Delete a schedule: it fires no more, and instants already due are recorded as passed over. Its fire records stay, and so do
-- its jobs. One that is not stored stays so. The call is refused if an instant has come due since it was prepared.
--
-- KEYS home      hash  the tenant's meta
-- ARGV job_key   text  which schedule
-- ARGV expected  text  the revision to delete; empty: whichever
-- ARGV month     text  YYYYMM of now in UTC
-- ARGV by        text  who
-- ARGV reason    text  why
-- ARGV token     text  names this deletion: sent again, it deletes nothing that was stored since
-- ITEMS          what is due, as `read_due` reads it
-- GIVES          {"1" if this deletion found it, "1" if code declares it (not told again) or "", earliest fire or "", version}
-- FAILS          STALE_PLAN

local key = K.schedule(job_key)
local token_before, top, latest = deletions.last()
if token == token_before then return {'1', '', earliest_fire(), text(read_clock())} end

local revision = tonumber(redis.call('HGET', key, 'revision') or false)
if not revision then return {'', '', earliest_fire(), text(read_clock())} end
if expected ~= '' and tonumber(expected) ~= revision then
  return refuse('STALE_PLAN', 'schedule ' .. job_key .. ' is at revision ' .. text(revision) .. ', not ' .. expected)
end
local fields, due = redis.call('HGETALL', key), read_due(ARGV, FIRST)
local untold = not_all_told(job_key, fields, due)
if untold then return refuse('STALE_PLAN', untold) end

for at = 1, #fields, 2 do
  local kind, trigger = string.match(fields[at], '^(%l+):(.*)$')
  if kind == 'calendar' then calendars.leave(job_key, trigger, fields[at + 1]) end
  if kind == 'last' then latest = math.max(latest, tonumber(fields[at + 1])) end
  if kind == 'next' then
    unplan(job_key, trigger)
    if tonumber(fields[at + 1]) <= now then pass_over(job_key, trigger, due[trigger]) end
  end
end
for _, trigger in ipairs(redis.call('SMEMBERS', K.recorded(job_key))) do fires.let_go(job_key, trigger, month) end
local code = redis.call('HEXISTS', key, 'code')
redis.call('DEL', key, K.revisions(job_key))
if redis.call('EXPIRE', K.recorded(job_key), KEEP_SECONDS) == 1 then -- as long as its records it is known who deleted it, and why
  keep_revision(job_key, revision, 'delete', by, reason, '')
  redis.call('EXPIRE', K.revisions(job_key), KEEP_SECONDS)
end
redis.call('ZREM', K.schedules(), job_key)
deletions.note(token, math.max(top, revision), math.max(latest, now, clock_ms()))
return {'1', code == 1 and '1' or '', earliest_fire(), tick()}
