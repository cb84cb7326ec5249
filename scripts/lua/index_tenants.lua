-- All tenants that are known.
--
-- KEYS home  hash  the index's home
-- FLAGS no-writes
-- GIVES      {tenant, tenant, ...} in no order

return redis.call('SMEMBERS', K.tenants())
