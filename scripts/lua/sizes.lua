-- How long the lists are that a query could read: the counts by task and state, and the lists of what jobs share.
--
-- KEYS home  hash  the tenant's meta
-- REST kind value  of each such list
-- FLAGS no-writes
-- GIVES      {counts: flat list of "task|state" and number, the length of each list}

local answer = {redis.call('HGETALL', K.counts())}
for at = FIRST, #ARGV, 2 do answer[#answer + 1] = redis.call('ZCARD', shared_list(ARGV[at], ARGV[at + 1])) end
return answer
