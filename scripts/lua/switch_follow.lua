-- Have the next triggers of a disabled tenant observed, in the order of their next instants. The switch itself is one write;
-- the triggers follow it in steps, whoever takes them, and none of them moves. One that is observed already goes on from there.
--
-- KEYS home   hash  the tenant's meta
-- ARGV limit  int   how many at most
-- GIVES       {earliest visit or "", version}

local it = gate()
if not it or not it.disabled or not it.follow then return {earliest_fire(), text(read_clock())} end

-- Where the last step ended: at a trigger, which may have gone since or stand elsewhere, or at the beginning.
local function next_place()
  local score, member = string.match(it.follow, '^(%S+) (.*)$')
  if not score then return 0 end
  if redis.call('ZSCORE', K.triggers(), member) == score then return redis.call('ZRANK', K.triggers(), member) + 1 end
  return redis.call('ZCOUNT', K.triggers(), '-inf', '(' .. score)
end

local first, scored = next_place(), {}
local found = redis.call('ZRANGE', K.triggers(), first, first + limit - 1, 'WITHSCORES')
for at = 1, #found, 2 do scored[at], scored[at + 1] = found[at + 1], found[at] end
if #found > 0 then redis.call('ZADD', K.observed(), 'NX', unpack(scored)) end
if #found < 2 * limit then
  redis.call('HDEL', K.scheduling(), 'follow')
else
  redis.call('HSET', K.scheduling(), 'follow', found[#found] .. ' ' .. found[#found - 1])
end
return {earliest_fire(), tick()}
