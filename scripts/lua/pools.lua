-- The pools in which jobs wait to be claimed, now or later.
--
-- KEYS home  hash  the tenant's meta
-- FLAGS no-writes
-- GIVES      the pools, in no order

local waits, pools = {}, {}
for _, place in ipairs(pending_places()) do
  if not waits[place.pool] and redis.call('ZCARD', place.key) > 0 then
    waits[place.pool] = true
    pools[#pools + 1] = place.pool
  end
end
return pools
