-- Tell the tenant index when a tenant next wants a visit. Older news than it has is passed over; version 0 is a guess made
-- before the ledger was asked, which may call for a visit or for an earlier one and can put none off.
--
-- KEYS home     hash  the index's home
-- ARGV queue    text  due:POOL, reap or fire
-- ARGV who      text  the tenant
-- ARGV due      text  epoch ms; empty: nothing to visit
-- ARGV version  text  the tenant clock at which that was so; 0: a guess
-- FLAGS allow-oom
-- GIVES         1 if applied, 0 if it was old news

redis.call('SADD', K.tenants(), who)
if version == '0' then
  return due ~= '' and redis.call('ZADD', K.due(queue), 'LT', 'CH', text(due * 1000), who) or 0
end
local seen = redis.call('HGET', K.seen(queue), who)
if seen and tonumber(seen) > tonumber(version) then return 0 end
if due == '' then
  redis.call('ZREM', K.due(queue), who)
  redis.call('HDEL', K.seen(queue), who)
else
  redis.call('ZADD', K.due(queue), text(due * 1000), who)
  redis.call('HSET', K.seen(queue), who, version)
end
return 1
