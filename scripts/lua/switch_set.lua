-- Disable a tenant's scheduling, or enable it again. Nothing it has planned is touched, however much that is; schedulers begin to
-- observe it in steps (see `switch_follow`). What is asked for already changes nothing, but a new reason is taken. Settings that
-- cannot be read are written anew, if they are not those of a newer Tenure.
--
-- KEYS home     hash  the tenant's meta
-- ARGV enabled  text  "1" or ""
-- ARGV by       text  who
-- ARGV reason   text  why; empty: as before while it stands
-- ARGV ends     text  disabled until then (epoch ms); empty: until it is enabled
-- GIVES         {"1" if more than the reason has changed, as `switch_read`, earliest visit or "", version}
-- FAILS         BAD_INPUT SCHEDULING_DISABLED

local key = K.scheduling()
local it, trouble, step, newer = gate()
if newer then return refuse('SCHEDULING_DISABLED', trouble, step) end
if ends ~= '' and tonumber(ends) <= now then
  return refuse('BAD_INPUT', 'until ' .. ends .. ' is not after now (' .. text(now) .. ')')
end
local known = redis.pcall('HMGET', key, 'by', 'reason', 'until', 'revision')
if known.err then known = {} end
local known_by, known_reason, known_until, revision = unpack(known)
local disable = enabled ~= '1'
local stands = it ~= nil and it.disabled == disable
local changed = not stands or disable and (known_until or '') ~= ends
local said = reason ~= '' and (reason ~= known_reason or by ~= known_by)
if not changed and not said then
  return {'', switch.told(), earliest_fire(), text(read_clock())}
end

if not it then redis.call('DEL', key) end -- whatever it is
if stands and reason == '' then reason = known_reason or '' end
redis.call('HSET', key, 'layout', LAYOUT, 'state', disable and 'disabled' or 'enabled', 'by', by, 'reason', reason, 'until', ends,
  'since', text(stands and it.since or now), 'revision', text(math.floor(tonumber(revision) or 0) + 1))
if disable and not stands then redis.call('HSET', key, 'follow', '') end
if not disable then
  redis.call('HSET', key, 'resumed', text(stands and it.resumed or now))
  redis.call('HDEL', key, 'follow')
end
return {changed and '1' or '', switch.told(), earliest_fire(), tick()}
