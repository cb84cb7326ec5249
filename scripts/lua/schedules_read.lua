-- Schedules as they stand, in the order of their names.
--
-- KEYS home   hash  the tenant's meta
-- ARGV from   text  "[NAME" or "(NAME" or "-"
-- ARGV to     text  "[NAME" or "+"
-- ARGV limit  int   how many at most
-- FLAGS no-writes
-- GIVES       for each: {JobKey, flat list of fields and values}

local answers = {}
for _, job_key in ipairs(redis.call('ZRANGEBYLEX', K.schedules(), from, to, 'LIMIT', 0, limit)) do
  answers[#answers + 1] = {job_key, redis.call('HGETALL', K.schedule(job_key))}
end
return answers
