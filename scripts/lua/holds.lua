-- What is held in a tenant.
--
-- KEYS home  hash  the tenant's meta
-- FLAGS no-writes
-- GIVES      for each: {kind, name, until: 0 is until it is released, since, words}

local holds = {}
local stored = redis.call('HGETALL', K.gates())
for at = 1, #stored, 2 do
  local kind, name = string.match(stored[at], '^hold (%a+) (.*)$')
  if kind and gates.holds_until(stored[at + 1]) then
    holds[#holds + 1] = {kind, name, string.match(stored[at + 1], '^(%d+) (%d+) (.*)$')}
  end
end
return holds
