-- The triggers of a schedule of which there are fire records, also those that it has no more.
--
-- KEYS home     hash  the tenant's meta
-- ARGV job_key  text  which schedule
-- FLAGS no-writes
-- GIVES         their names, in no order

return redis.call('SMEMBERS', K.recorded(job_key))
