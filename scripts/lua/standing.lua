-- What a tenant wants from the index: the due time of each pool with pending jobs, the next visit of the reaper, the next fire, the
-- next telling of deaths, the next look at business rows.
--
-- KEYS home  hash  the tenant's meta
-- FLAGS no-writes
-- GIVES      {version, flat list of queue and due}

local answer = {text(read_clock())}
local function want(queue, due)
  if not due then return end
  due = math.max(0, math.min(tonumber(due) or now, BAND)) -- one that is no instant wants a visit, which puts it right
  answer[#answer + 1], answer[#answer + 2] = queue, text(due)
end
local told = redis.call('HGETALL', K.meta())
for at = 1, #told, 2 do
  if string.match(told[at], '^due:[^@]') then want(told[at], told[at + 1]) end
end
want('due:' .. NOTICES, next_notice())
want('due:' .. bound.QUEUE, bound.due())
local reaped = math.min(next_expiry() or math.huge, next_retired() or math.huge)
want('reap', reaped < math.huge and reaped)
local visit = earliest_fire()
if visit ~= '' then want('fire', visit) end
return answer
