-- Some minutes of the last hour, this one and the 60 before it, as far as anything happened in them.
--
-- KEYS home  hash  the tenant's meta
-- ARGV from  int   which of them is the first, counted back from this one, which is 0
-- ARGV many  int   how many
-- FLAGS no-writes
-- GIVES      for each: its hash as a flat list

local answer = {}
for back = from, from + many - 1 do
  local minute = math.floor(now / MINUTE_MS) - back
  local held = redis.call('HGETALL', K.minute(minute % SLOTS))
  for at = 1, #held, 2 do
    if held[at] == 'm' and held[at + 1] == text(minute) then answer[#answer + 1] = held end
  end
end
return answer
