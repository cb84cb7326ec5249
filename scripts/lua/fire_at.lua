-- The fire record of one planned instant, by itself or in a range.
--
-- KEYS home     hash  the tenant's meta
-- ARGV job_key  text  which schedule
-- ARGV trigger  text  which of its triggers
-- ARGV month    text  YYYYMM of the instant in UTC
-- ARGV instant  ms    which
-- FLAGS no-writes
-- GIVES         {the record, or "" if there is none, now, since when the tenant's records are whole, in microseconds, or ""}

local key = K.fires(month, trigger, job_key)
local before = books.count_below(key, instant + 1)
local found = before > 0 and redis.call('LINDEX', key, before - 1) or ''
local first, until_ = string.match(found, '^(%d+) .* (%S+) %d+$')
if not first or (tonumber(first) ~= instant and (tonumber(until_) or 0) < instant) then found = '' end
return {found, text(now), read_meta('born') or ''}
