-- Prolong a named lease, by its owner only; also after its time is over, if nobody has taken it.
--
-- KEYS home   hash  the tenant's meta
-- ARGV name   text  the lease
-- ARGV owner  text  the holder's token
-- ARGV fence  text  the fence it got
-- ARGV ttl    ms    how long from now
-- FLAGS allow-oom
-- GIVES       expiry
-- FAILS       STALE_FENCE

local held_by, held = unpack(redis.call('HMGET', K.lease(name), 'owner', 'fence'))
if held_by ~= owner or held ~= fence then
  return refuse('STALE_FENCE', 'lease ' .. name .. ' is ' .. (held and 'held under fence ' .. held or 'free')
    .. ', you held ' .. fence)
end
local expiry = text(now + ttl)
redis.call('HSET', K.lease(name), 'until', expiry)
add(K.leases(), expiry, name)
return expiry
