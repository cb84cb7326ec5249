-- The revisions of a schedule that are remembered.
--
-- KEYS home     hash  the tenant's meta
-- ARGV job_key  text  which schedule
-- FLAGS no-writes
-- GIVES         flat list of revisions and what is kept of each

return redis.call('HGETALL', K.revisions(job_key))
