-- Some of the tenants, from a cursor on: the slow walk that finds what every hint has missed.
--
-- KEYS home    hash  the index's home
-- ARGV cursor  text  "0" at the start; "0" in the answer at the end
-- ARGV limit   int   about how many
-- FLAGS no-writes
-- GIVES        {cursor, tenant, tenant, ...}

local found = redis.call('SSCAN', K.tenants(), cursor, 'COUNT', limit)
return {found[1], unpack(found[2])}
