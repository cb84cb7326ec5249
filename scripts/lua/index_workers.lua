-- A page of the workers in the register, in no order; one may come twice.
--
-- KEYS home    hash  the index's home
-- ARGV cursor  text  where the page before ended; 0: from the start
-- ARGV limit   int   about how many make a page
-- FLAGS no-writes
-- GIVES        {now, the next cursor or 0, name, "heard at" and what it said, ...}

local found = redis.call('HSCAN', K.workers(), cursor, 'COUNT', limit)
return {text(now), found[1], unpack(found[2])}
