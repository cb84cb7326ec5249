-- The books of a tenant that have new records: see `shared/books.lua`.
--
-- KEYS home   hash  the tenant's meta
-- ARGV since  int   the tenant clock up to which all is known
-- ARGV limit  int   how many at most
-- FLAGS no-writes
-- GIVES       {name, the clock of its last record, name, clock, ...}, in the order of the clock

return redis.call('ZRANGEBYSCORE', K.books(), '(' .. text(since), '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
