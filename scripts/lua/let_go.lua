-- Which of some jobs the ledger has, and up to when it has let jobs of a state go, or may have lost them.
--
-- KEYS home   hash  the tenant's meta
-- ARGV state  text  empty: any in which a job ends
-- REST id
-- FLAGS no-writes
-- GIVES       {an instant (epoch ms) after which no job has ended that it has let go; empty if none is known, the ids that it has}

local born = read_meta('born')
local last = born and math.floor(tonumber(born) / 1000)
for ended in pairs(ENDED) do
  if last and (state == '' or state == ended) then last = math.max(last, let_go_until(ended)) end
end
local answer = {last and text(last) or ''}
for at = FIRST, #ARGV do
  if redis.call('EXISTS', K.row(ARGV[at])) == 1 then answer[#answer + 1] = ARGV[at] end
end
return answer
