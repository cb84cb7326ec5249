-- Hold a tenant, a pool or a task: no job of it is claimed until somebody releases it, or until an instant. The same hold again
-- changes nothing; another word on what is held already is held since the first.
--
-- KEYS home   hash  the tenant's meta
-- ARGV kind   text  tenant | pool | task
-- ARGV name   text  which; empty for the tenant
-- ARGV till   text  epoch ms, or "+N" for N ms from now; empty: until it is released
-- ARGV words  text  who and why, for those who look
-- GIVES       {"1", or "0" if nothing had to change, until: 0 is until it is released, since, words, news: {pool, due, version}}
-- FAILS       BAD_INPUT

local field = 'hold ' .. kind .. ' ' .. name
local ends = till == '' and 0 or string.sub(till, 1, 1) == '+' and instant(till) or tonumber(till)
if till ~= '' and ends <= now then
  return refuse('BAD_INPUT', 'a hold until ' .. text(ends) .. ' would be over already: it is ' .. text(now))
end

local hold = gates.at(field)
local since = text(now)
if gates.holds_until(hold) then
  local ends_now, since_now, words_now = string.match(hold, '^(%d+) (%d+) (.*)$')
  since = since_now
  if ends_now == text(ends) and words_now == words then return {'0', ends_now, since, words, {}} end
end
gates.set(field, text(ends) .. ' ' .. since .. ' ' .. words)
redis.call('PUBLISH', namespace .. ':wake', 'hold ' .. tenant .. ' ' .. kind .. ' ' .. name)
held_until(kind, name, ends > 0 and ends or NEVER) -- it may have been held for longer
return {'1', text(ends), since, words, news()}
