-- Ids of the jobs of a trace in the order they were made, a slice of them after (score, id). A job alone in its trace has no list.
--
-- KEYS home   hash  the tenant's meta
-- ARGV trace  text  which
-- ARGV score  text  when the last job of the slice before was made; empty: from the beginning
-- ARGV id     text  that job
-- ARGV limit  int   how many at most
-- FLAGS no-writes
-- GIVES       {"1" if there are more, else "", when the last one was made or "", id, id, ...}

local key = K.group('trace', trace)
local rank = score == '' and 0 or passed(key, tonumber(score), id, false)
local found = redis.call('ZRANGE', key, rank, rank + limit, 'WITHSCORES')
if #found == 0 and score == '' then
  local alone = load(trace)
  if alone and not alone.trace then found = {trace, alone.created} end
end
local answer = {#found > 2 * limit and '1' or '', ''}
for at = 1, math.min(#found, 2 * limit), 2 do
  answer[#answer + 1], answer[2] = found[at], text(found[at + 1])
end
return answer
