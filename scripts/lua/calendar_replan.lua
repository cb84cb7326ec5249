-- Go on with a calendar that has changed: the next triggers in it are planned anew.
--
-- KEYS home  hash  the tenant's meta
-- ARGV name  text  which calendar
-- GIVES      {"1" if some are left, earliest visit or "", version}

local left = calendars.plan_anew(name, redis.call('HGET', K.calendar(name), 'revision') or '0')
return {left and '1' or '', earliest_fire(), tick()}
