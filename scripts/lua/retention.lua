-- Say how long the jobs of states are kept after they came to rest, and how many at most; answer how it then is.
--
-- KEYS home   hash  the tenant's meta
-- REST state kept   "ms number", each "-" if there is no such bound; empty: as it is without a word
-- FLAGS allow-oom
-- GIVES       {when the reaper has to come for it or "", version, state, kept, state, kept, ...}

for at = FIRST, #ARGV, 2 do
  if ARGV[at + 1] == '' then
    redis.call('HDEL', K.meta(), 'keep:' .. ARGV[at])
  else
    redis.call('HSET', K.meta(), 'keep:' .. ARGV[at], ARGV[at + 1])
  end
end
local due = FIRST <= #ARGV and next_retired()
local answer = {due and text(due) or '', due and tick() or ''}
for _, state in ipairs(RESTING) do answer[#answer + 1], answer[#answer + 2] = state, kept(state) end
return answer
