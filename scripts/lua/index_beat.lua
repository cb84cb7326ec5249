-- A worker says that it lives, and what it offers. Those that nobody has heard for long are forgotten, a few at a time.
--
-- KEYS home    hash  the index's home
-- ARGV worker  text  its name
-- ARGV said    text  what it says of itself; the scripts never look into it
-- ARGV keep    ms    how long a worker is remembered that says nothing more
-- FLAGS allow-oom
-- GIVES        how many were forgotten

local LOOK = 8

redis.call('HSET', K.workers(), worker, text(now) .. ' ' .. said)
local some = redis.call('HRANDFIELD', K.workers(), LOOK, 'WITHVALUES')
local gone = {}
for at = 1, #some, 2 do
  local heard = tonumber(string.match(some[at + 1], '^%d+'))
  -- one that is far ahead was heard before the clock went back
  if not heard or math.abs(now - heard) > keep then gone[#gone + 1] = some[at] end
end
if #gone > 0 then redis.call('HDEL', K.workers(), unpack(gone)) end
return #gone
