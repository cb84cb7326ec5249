-- Records of a book, oldest first.
--
-- KEYS home   hash  the tenant's meta
-- ARGV name   text  as `books_since` names it
-- ARGV from   int   the position of the first, from 0 on
-- ARGV limit  int   how many at most
-- FLAGS no-writes
-- GIVES       {record, record, ...}

return redis.call('LRANGE', base .. name, from, from + limit - 1)
