-- Remember that a group of schedules is paused, for those that are stored later; or forget it.
--
-- KEYS home    hash  the tenant's meta
-- ARGV group   text  which
-- ARGV pause   text  "1": pause it; empty: resume it
-- ARGV by      text  who
-- ARGV reason  text  why
-- GIVES        1 if it was not so before

if pause == '1' then return redis.call('HSETNX', K.groups(), group, text(now) .. '\n' .. by .. '\n' .. reason) end
return redis.call('HDEL', K.groups(), group)
