-- Ids of one list of the tenant, newest first (pending: by due time), from a position on.
--
-- KEYS home   hash  the tenant's meta
-- ARGV family text  journal | succeeded | running | queue | stopped
-- ARGV name   text  which task, pool or state
-- ARGV from   int   how many of its entries to pass over (journal, succeeded: an absolute position; -1: the end)
-- ARGV limit  int   how many at most
-- FLAGS no-writes
-- GIVES       {next position or "", id, id, ...}

local key = K[family](name)
if family == 'journal' or family == 'succeeded' then
  local cut = tonumber(redis.call('HGET', K.meta(), 'cut:' .. (family == 'journal' and name or '+ok')) or 0)
  local last = redis.call('LLEN', key) - 1
  if from >= 0 then last = math.min(last, from - cut) end
  if last < 0 then return {'', ''} end
  local first = math.max(0, last - limit + 1)
  local ids = redis.call('LRANGE', key, first, last)
  local answer = {first > 0 and text(first - 1 + cut) or '', text(last + cut)}
  for at = #ids, 1, -1 do answer[#answer + 1] = ids[at] end
  return answer
end
local order = (family == 'queue' or family == 'running') and 'ZRANGE' or 'ZREVRANGE'
local start = math.max(0, from)
local ids = redis.call(order, key, start, start + limit)
local more = #ids > limit
if more then ids[#ids] = nil end
return {more and text(start + limit) or '', text(start), unpack(ids)}
