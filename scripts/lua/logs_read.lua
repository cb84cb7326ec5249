-- Entries of the execution log of a schedule in one UTC month, newest first.
--
-- KEYS home     hash  the tenant's meta
-- ARGV job_key  text  which schedule
-- ARGV month    text  YYYYMM
-- ARGV before   text  the tenant clock of the entry to go down from, itself not included; empty: the newest is the first
-- ARGV limit    int   how many at most
-- FLAGS no-writes
-- GIVES         {"1" if there are more, entry, entry, ...}

local key = K.entries(month, job_key)
local last = redis.call('LLEN', key) - 1

-- They stand in the order of the clock, so a place is found by halving.
if before ~= '' then
  local low = 0
  while low <= last do
    local middle = math.floor((low + last) / 2)
    if tonumber(string.match(redis.call('LINDEX', key, middle), '^%d+')) < tonumber(before) then
      low = middle + 1
    else
      last = middle - 1
    end
  end
end
if last < 0 then return {''} end
local first = math.max(0, last - limit + 1)
local found, answer = redis.call('LRANGE', key, first, last), {first > 0 and '1' or ''}
for at = #found, 1, -1 do answer[#answer + 1] = found[at] end
return answer
