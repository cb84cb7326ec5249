-- The schedules that code has declared, so that one which no code declares any more is found.
--
-- KEYS home    hash  the index's home
-- ARGV change  text  "add" or "drop"
-- REST who           tenant:JobKey
-- FLAGS allow-oom
-- GIVES        {tenant:JobKey, ...}, all of them

for at = FIRST, #ARGV do redis.call(change == 'add' and 'SADD' or 'SREM', K.declared(), ARGV[at]) end
return redis.call('SMEMBERS', K.declared())
