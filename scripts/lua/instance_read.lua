-- An instance: its flag, and its newest jobs by state; or only those of one node of it.
--
-- KEYS home      hash  the tenant's meta
-- ARGV instance  text  which
-- ARGV node      text  which of its nodes; empty: all
-- ARGV most      int   how many of its jobs are looked at
-- FLAGS          no-writes
-- GIVES          {now, flag: flat list of names and values, how many jobs the instance has, states: {state, jobs, the earliest due
--                instant}, the newest job that has not ended, else the newest, or ""}

local group = K.group('instance', instance)
local found, newest, unfinished = {}, '', nil
for _, id in ipairs(redis.call('ZRANGE', group, -most, -1)) do
  local state, run_at, created, of_node =
    unpack(redis.call('HMGET', K.row(id), SHORT.state, SHORT.run_at, SHORT.created, SHORT.node))
  if created and (node == '' or (of_node and get_blob({id = id, node = of_node}, 'node') == node)) then
    state = state or DEFAULTS.state
    local seen = found[state] or {0, math.huge}
    found[state] = {seen[1] + 1, math.min(seen[2], run_at or created)}
    newest = id
    if not ENDED[state] then unfinished = id end
  end
end
local states = {}
for state, seen in pairs(found) do states[#states + 1] = {state, text(seen[1]), text(seen[2])} end
return {text(now), redis.call('HGETALL', K.instance(instance)), text(redis.call('ZCARD', group)), states, unfinished or newest}
