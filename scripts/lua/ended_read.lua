-- Jobs that have ended in a state, in the order in which they ended, from a place on.
--
-- KEYS home   hash  the tenant's meta
-- ARGV state  text  succeeded | dead | failed | canceled
-- ARGV from   int   of succeeded ones a position, counted from the first that ever was; else an instant (epoch ms)
-- ARGV id     text  of those that ended at that instant the ones after this id; empty: all of them
-- ARGV limit  int   how many at most
-- FLAGS no-writes
-- GIVES       {id, where it stands, id, where it stands, ...}

if state ~= 'succeeded' then
  local key = K.stopped(state)
  local rank = passed(key, from, id, false)
  return redis.call('ZRANGE', key, rank, rank + limit - 1, 'WITHSCORES')
end
local cut, answer = cut_of('+ok'), {}
local first = math.max(0, from - cut)
for at, id in ipairs(redis.call('LRANGE', K.succeeded(), first, first + limit - 1)) do
  answer[2 * at - 1], answer[2 * at] = id, text(cut + first + at - 1)
end
return answer
