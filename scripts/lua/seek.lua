-- Where in the journals of tasks the jobs stand that were made before an instant.
--
-- KEYS home    hash  the tenant's meta
-- ARGV before  ms    the instant
-- REST task
-- FLAGS no-writes
-- GIVES        for each task the position of the newest of them, -1 if there is none

-- When the job was made that `id_at` gives, or the nearest one before it that is still there; and where that stands.
local function made_at(id_at, nth, least)
  for at = nth, least, -1 do
    local created = redis.call('HGET', K.row(id_at(at)), SHORT.created)
    if created then return tonumber(created), at end
  end
end

-- The last of the entries from 0 to `last`, which stand in the order they were made, that is old enough; -1: none is.
local function search(id_at, last)
  local low, high, found = 0, last, -1
  while low <= high do
    local middle = math.floor((low + high) / 2)
    local created, at = made_at(id_at, middle, low)
    if not created then
      low = middle + 1
    elseif created < before then
      found, low = middle, middle + 1
    else
      high = at - 1
    end
  end
  return found
end

local answer = {}
for nth = FIRST, #ARGV do
  local task = ARGV[nth]
  local journal, aside = K.journal(task), K.aside(task)
  local found = search(function(at) return redis.call('LINDEX', journal, at) end, redis.call('LLEN', journal) - 1)
  if found >= 0 then
    answer[#answer + 1] = text(cut_of(task) + found)
  else
    local older = search(function(at) return redis.call('ZRANGE', aside, at, at)[1] end, redis.call('ZCARD', aside) - 1)
    answer[#answer + 1] = older < 0 and '-1' or redis.call('ZRANGE', aside, older, older, 'WITHSCORES')[2]
  end
end
return answer
