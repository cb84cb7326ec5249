-- Remember a tenant before anything of it is written, so that the sweep finds it whatever happens to the hints.
--
-- KEYS home  hash  the index's home
-- ARGV who   text  the tenant
-- GIVES      1 if it is new

return redis.call('SADD', K.tenants(), who)
