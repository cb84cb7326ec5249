-- Disable a tenant's scheduling, or enable it again. Nothing it has planned is touched, however much that is; schedulers begin to
-- observe it in steps (see `switch_follow`). What is asked for already changes nothing.
--
-- KEYS home     hash  the tenant's meta
-- ARGV enabled  text  "1" or ""
-- ARGV by       text  who
-- ARGV reason   text  why
-- ARGV ends     text  disabled until then (epoch ms); empty: until it is enabled
-- GIVES         {"1" if it has changed, flat list of the settings, earliest visit or "", version}
-- FAILS         BAD_INPUT

local key = K.scheduling()
local it = gate()
if ends ~= '' and tonumber(ends) <= now then
  return refuse('BAD_INPUT', 'until ' .. ends .. ' is not after now (' .. text(now) .. ')')
end
local known_until = redis.call('HGET', key, 'until') or ''
local disable = enabled ~= '1'
if it and it.disabled == disable and (not disable or known_until == ends) then
  return {'', redis.call('HGETALL', key), earliest_fire(), text(read_clock())}
end

if disable and not (it and it.disabled) then redis.call('HSET', key, 'follow', '') end
redis.call('HSET', key, 'layout', LAYOUT, 'state', disable and 'disabled' or 'enabled', 'by', by, 'reason', reason, 'until', ends)
if not (it and it.disabled == disable) then redis.call('HSET', key, 'since', text(now)) end
if not disable then
  redis.call('HSET', key, 'resumed', text(now))
  redis.call('HDEL', key, 'follow')
end
redis.call('HINCRBY', key, 'revision', 1)
return {'1', redis.call('HGETALL', key), earliest_fire(), tick()}
