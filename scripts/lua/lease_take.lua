-- Take a named lease if it is free or its time is over. Asked again by the same owner, it answers the same lease.
--
-- KEYS home   hash  the tenant's meta
-- ARGV name   text  the lease
-- ARGV owner  text  a random token of this holder
-- ARGV ttl    ms    how long it lasts
-- GIVES       {fence, expiry, next expiry of any lease} if taken; {"", ms until its holder's time is over, ""} if not

local key = K.lease(name)
local held_by, fence, expiry = unpack(redis.call('HMGET', key, 'owner', 'fence', 'until'))
if held_by == owner and tonumber(expiry) > now then return {fence, expiry, text(next_expiry())} end
if held_by and tonumber(expiry) > now then return {'', text(expiry - now), ''} end
fence, expiry = tick(), text(now + ttl)
redis.call('HSET', key, 'owner', owner, 'fence', fence, 'until', expiry, 'since', text(now))
add(K.leases(), expiry, name)
return {fence, expiry, text(math.min(ttl + now, next_expiry() or math.huge))}
