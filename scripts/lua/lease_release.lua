-- Give a named lease back, by its owner only, and wake one of those who wait.
--
-- KEYS home   hash  the tenant's meta
-- ARGV name   text  the lease
-- ARGV owner  text  the holder's token
-- ARGV fence  text  the fence it got
-- FLAGS allow-oom
-- GIVES       1 if it was ours to give, else 0

local held_by, held = unpack(redis.call('HMGET', K.lease(name), 'owner', 'fence'))
if held_by ~= owner or held ~= fence then return 0 end
redis.call('DEL', K.lease(name))
drop(K.leases(), name)
local handover = K.handover(name)
if redis.call('LLEN', handover) == 0 then
  redis.call('LPUSH', handover, '1')
  redis.call('PEXPIRE', handover, 60000) -- only tidiness: a waiter also wakes by its own clock
end
return 1
