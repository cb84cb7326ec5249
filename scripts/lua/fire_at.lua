-- The fire record of one planned instant: records stand in the order of their instants, so it is found by halving.
--
-- KEYS home     hash  the tenant's meta
-- ARGV job_key  text  which schedule
-- ARGV trigger  text  which of its triggers
-- ARGV month    text  YYYYMM of the instant in UTC
-- ARGV instant  ms    which
-- FLAGS no-writes
-- GIVES         the record, or "" if there is none

local key = K.fires(month, trigger, job_key)
local low, high, found = 0, redis.call('LLEN', key) - 1, ''
while low <= high do
  local middle = math.floor((low + high) / 2)
  local record = redis.call('LINDEX', key, middle)
  if tonumber(string.match(record, '^%d+')) <= instant then
    low, found = middle + 1, record
  else
    high = middle - 1
  end
end
local first, until_ = string.match(found, '^(%d+) .* (%S+) %d+$')
if first and (tonumber(first) == instant or (tonumber(until_) or 0) >= instant) then return found end
return ''
