-- Keep the set of tenants whole: add those that a pass over the whole store has found, and say whether a pass is to begin,
-- because tenants have become fewer or the last one is long ago. Who is told so has it for itself.
--
-- KEYS home   hash  the index's home
-- ARGV every  ms    how long after a pass the next one begins in any case
-- ARGV going  int   1 while the asker is making a pass
-- REST tenant       that it has found
-- FLAGS allow-oom
-- GIVES       1 if the asker is to begin a pass, from the start, else 0

local known, at = unpack(redis.call('HMGET', K.walk(), 'known', 'counted'))
known, at = tonumber(known) or 0, tonumber(at) or math.huge
local fewer = redis.call('SCARD', K.tenants()) < known
local due = fewer or (going == 0 and (at > now or now - at >= every))
for nth = FIRST, #ARGV do redis.call('SADD', K.tenants(), ARGV[nth]) end
local size = redis.call('SCARD', K.tenants())
if due or going == 1 then redis.call('HSET', K.walk(), 'counted', text(now)) end
if due or size > known then redis.call('HSET', K.walk(), 'known', text(size)) end
return due and 1 or 0
