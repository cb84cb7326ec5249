-- A tenant's scheduling switch as it stands.
--
-- KEYS home  hash  the tenant's meta
-- FLAGS no-writes
-- GIVES      {"1" if scheduling is disabled, what is wrong with the settings or "", flat list of the settings}

local it, trouble = gate()
return {(not it or it.disabled) and '1' or '', trouble or '', redis.call('HGETALL', K.scheduling())}
