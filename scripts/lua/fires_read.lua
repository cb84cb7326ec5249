-- Fire records of a trigger in one UTC month, newest first.
--
-- KEYS home     hash  the tenant's meta
-- ARGV job_key  text  which schedule
-- ARGV trigger  text  which of its triggers
-- ARGV month    text  YYYYMM
-- ARGV before   int   position to go down from; -1: the end
-- ARGV limit    int   how many at most
-- FLAGS no-writes
-- GIVES         {next position or "", record, record, ...}

local key = K.fires(month, trigger, job_key)
local last = redis.call('LLEN', key) - 1
if before >= 0 then last = math.min(last, before) end
if last < 0 then return {''} end
local first = math.max(0, last - limit + 1)
local records = redis.call('LRANGE', key, first, last)
local answer = {first > 0 and text(first - 1) or ''}
for at = #records, 1, -1 do answer[#answer + 1] = records[at] end
return answer
