-- Note how far an archiver has come in the jobs that ended in a state: retention leaves it the rest for a while.
--
-- KEYS home      hash  the tenant's meta
-- ARGV state     text  succeeded | dead | failed | canceled
-- ARGV position  int   up to where it has all, as `ended_read` counts
-- GIVES          1

redis.call('HSET', K.meta(), 'archived:' .. state, text(position) .. ' ' .. text(now))
return 1
