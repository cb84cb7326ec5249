-- Delete a schedule: it fires no more, and instants already due are recorded as deleted. Its fire records stay, and so do its
-- jobs. One that is not stored stays so. The call is refused if an instant has come due since it was prepared.
--
-- KEYS home      hash  the tenant's meta
-- ARGV job_key   text  which schedule
-- ARGV expected  text  the revision to delete; empty: whichever
-- ARGV token     text  names this deletion: sent again, it deletes nothing that was stored since
-- REST trigger planned last count following month   what is due: from `planned` to `last` (empty: that one alone) are `count`
-- GIVES          {"1" if this deletion found it, earliest fire or "", version}
-- FAILS          STALE_PLAN

local key = K.schedule(job_key)
local token_before, top, latest = last_deletion()
if token == token_before then return {'1', earliest_fire(), text(read_clock())} end

local revision = tonumber(redis.call('HGET', key, 'revision') or false)
if not revision then return {'', earliest_fire(), text(read_clock())} end
if expected ~= '' and tonumber(expected) ~= revision then
  return refuse('STALE_PLAN', 'schedule ' .. job_key .. ' is at revision ' .. text(revision) .. ', not ' .. expected)
end

local due = {}
for at = FIRST, #ARGV, 6 do
  due[ARGV[at]] = {planned = ARGV[at + 1], last = ARGV[at + 2], count = ARGV[at + 3], following = ARGV[at + 4], month = ARGV[at + 5]}
end
local planned = {}
local fields = redis.call('HGETALL', key)
for at = 1, #fields, 2 do
  local kind, trigger = string.match(fields[at], '^(%l+):(.*)$')
  if kind == 'last' then latest = math.max(latest, tonumber(fields[at + 1])) end
  if kind == 'next' then
    planned[#planned + 1] = trigger
    local told = due[trigger]
    if tonumber(fields[at + 1]) > now then
      due[trigger] = nil
    elseif not told or told.planned ~= fields[at + 1] or (tonumber(told.following) or now + 1) <= now then
      return refuse('STALE_PLAN', 'trigger ' .. trigger .. ' of ' .. job_key .. ' is due at ' .. fields[at + 1]
        .. ', and the deletion was prepared for ' .. (told and told.planned or 'none'))
    end
  end
end

for _, trigger in ipairs(planned) do
  redis.call('ZREM', K.triggers(), trigger .. ':' .. job_key)
  local told = due[trigger]
  if told then
    record_fire(job_key, trigger, told.month, {told.planned, 'skipped', 'deleted', '', text(now), '', told.last, told.count})
  end
end
redis.call('DEL', key)
redis.call('ZREM', K.schedules(), job_key)
note_deletion(token, math.max(top, revision), math.max(latest, now))
return {'1', earliest_fire(), tick()}
