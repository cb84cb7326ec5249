-- The next page of the one slow walk over all tenants that all processes share; nothing while it is not yet time for it.
--
-- KEYS home   hash  the index's home
-- ARGV limit  int   about how many tenants make a page
-- ARGV pause  ms    the shortest time between two pages
-- ARGV round  ms    the shortest time for a round, so that few tenants are not visited again and again
-- FLAGS allow-oom
-- GIVES       {ms until the next page, tenant, tenant, ...}

local cursor, at = unpack(redis.call('HMGET', K.walk(), 'cursor', 'next'))
local wait = (tonumber(at) or 0) - now
if wait > 0 and wait <= round then return {text(wait)} end -- one that is longer was written before the clock went back
if not string.match(cursor or '', '^%d+$') or #cursor > 18 then cursor = '0' end
local found = redis.call('SSCAN', K.tenants(), cursor, 'COUNT', limit)
local size = redis.call('SCARD', K.tenants())
wait = size == 0 and pause or math.max(pause, math.floor(round * limit / math.max(limit, size)))
redis.call('HSET', K.walk(), 'cursor', found[1], 'next', text(now + wait))
local answer = {text(wait)}
for _, who in ipairs(found[2]) do answer[#answer + 1] = who end
return answer
