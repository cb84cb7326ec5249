-- What a tenant has: counts by task and state, and the tasks with a journal.
--
-- KEYS home  hash  the tenant's meta
-- FLAGS no-writes
-- GIVES      {now, counts: flat list of "task|state" and number}

return {text(now), redis.call('HGETALL', K.counts())}
