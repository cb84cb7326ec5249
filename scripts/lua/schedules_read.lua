-- Schedules as they stand, in the order of their names.
--
-- KEYS home   hash  the tenant's meta
-- ARGV from   text  "[NAME" or "(NAME" or "-"
-- ARGV to     text  "[NAME" or "+"
-- ARGV limit  int   how many at most
-- FLAGS no-writes
-- GIVES       {"1" if scheduling is disabled, from when on it runs again or 0, what the tenant clock says in ms and the latest
--             instant of what was deleted: nothing that has been stored, or anew, is planned up to then; calendars of their
--             triggers: flat list of name, revision and data; then for each: {JobKey, flat list of fields and values, flat list of triggers and up to before
--             when each was observed}}

local it = gate() or {disabled = true, resumed = 0}
local rows, used = {}, {}
for _, job_key in ipairs(redis.call('ZRANGEBYLEX', K.schedules(), from, to, 'LIMIT', 0, limit)) do
  local fields, observed = redis.call('HGETALL', K.schedule(job_key)), {}
  for at = 1, #fields, 2 do
    local trigger = string.match(fields[at], '^next:(.*)$')
    local cursor = trigger and redis.call('ZSCORE', K.observed(), trigger .. ':' .. job_key)
    if cursor then observed[#observed + 1], observed[#observed + 2] = trigger, text(cursor) end
    if string.match(fields[at], '^calendar:') then used[fields[at + 1]] = true end
  end
  rows[#rows + 1] = {job_key, fields, observed}
end
local _, _, deleted = deletions.last()
return {it.disabled and '1' or '', text(it.resumed), text(clock_ms()), text(deleted), calendars.told(used), unpack(rows)}
