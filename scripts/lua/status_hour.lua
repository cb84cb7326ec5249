-- Some minutes of the last hour, this one and the 60 before it, as far as anything happened in them.
--
-- KEYS home  hash  the tenant's meta
-- ARGV from  int   which of them is the first, counted back from this one, which is 0
-- ARGV many  int   how many
-- FLAGS no-writes
-- GIVES      the numbers of these minutes added up: a flat list

local sums, answer = {}, {}
for back = from, from + many - 1 do
  local minute = math.floor(now / MINUTE_MS) - back
  local key = K.minute(minute % SLOTS)
  if redis.call('HGET', key, 'm') == text(minute) then
    local held = redis.call('HGETALL', key)
    for at = 1, #held, 2 do sums[held[at]] = (sums[held[at]] or 0) + held[at + 1] end
  end
end
sums.m = nil
for field, sum in pairs(sums) do answer[#answer + 1], answer[#answer + 2] = field, text(sum) end
return answer
