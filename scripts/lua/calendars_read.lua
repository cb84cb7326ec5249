-- Calendars as they stand, in the order of their names.
--
-- KEYS home   hash  the tenant's meta
-- ARGV from   text  "[NAME" or "(NAME" or "-"
-- ARGV to     text  "[NAME" or "+"
-- ARGV limit  int   how many at most
-- ARGV users  int   of how many triggers in each to tell the schedules
-- FLAGS no-writes
-- GIVES       for each {name, flat list of fields and values, JobKeys of schedules that use it}

local answers = {}
for _, name in ipairs(redis.call('ZRANGEBYLEX', K.calendars(), from, to, 'LIMIT', 0, limit)) do
  answers[#answers + 1] = {name, redis.call('HGETALL', K.calendar(name)), calendars.users(name, users)}
end
return answers
