-- Delete a calendar that no trigger stands in. One that is not stored stays so.
--
-- KEYS home      hash  the tenant's meta
-- ARGV name      text  which
-- ARGV expected  text  the revision to delete; empty: whichever
-- GIVES          "1" if there was one
-- FAILS          STALE_PLAN IN_USE

local key = K.calendar(name)
local revision = redis.call('HGET', key, 'revision')
if not revision then return '' end
if expected ~= '' and expected ~= revision then
  return refuse('STALE_PLAN', 'calendar ' .. name .. ' is at revision ' .. revision .. ', not ' .. expected)
end
local users = calendars.users(name, 10)
if #users > 0 then
  local many = redis.call('ZCARD', K.planned_by(name))
  return refuse('IN_USE', 'calendar ' .. name .. ' is used by ' .. table.concat(users, ', ')
    .. (many > 10 and ' and others, ' .. text(many) .. ' triggers in all' or ''))
end
redis.call('DEL', key)
redis.call('ZREM', K.calendars(), name)
return '1'
