-- Release what is held: its jobs count again, where they stand. Of what is not held it changes nothing.
--
-- KEYS home  hash  the tenant's meta
-- ARGV kind  text  tenant | pool | task
-- ARGV name  text  which; empty for the tenant
-- FLAGS allow-oom
-- GIVES      {"1", or "0" if it was not held, news: {pool, due, version}}

local field = 'hold ' .. kind .. ' ' .. name
local hold = gates.at(field)
if not hold then return {'0', {}} end
local held = gates.holds_until(hold)
gates.drop(field)
tick() -- what was told of its end is past by this clock
if not held then return {'0', {}} end

held_until(kind, name, now) -- who comes to a pool finds out when its jobs are due
return {'1', news()}
