-- The ids of leased jobs, a slice of them by the end of their leases. A lease that is renewed meanwhile comes again later.
--
-- KEYS home   hash  the tenant's meta
-- ARGV score  text  where the slice before ended; empty: from the beginning
-- ARGV id     text  the job there
-- ARGV limit  int   how many at most
-- FLAGS no-writes
-- GIVES       {the score of the last or "", id, id, ...}

local rank = score == '' and 0 or passed(K.running(), tonumber(score), id, false)
local found = redis.call('ZRANGE', K.running(), rank, rank + limit - 1, 'WITHSCORES')
local answer = {found[#found] or ''}
for at = 1, #found, 2 do answer[#answer + 1] = found[at] end
return answer
