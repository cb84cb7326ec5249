-- Suspend an instance, end it, or let it go on: its flag, which every operation obeys from now on, and the first step of the walk that
-- brings its jobs after it. What it is already changes nothing.
--
-- KEYS home      hash  the tenant's meta
-- ARGV instance  text  which
-- ARGV flag      text  suspended | ended; empty: it goes on
-- ARGV by        text  who says so
-- ARGV reason    text  why
-- ARGV most      int   how many jobs the step looks at
-- FLAGS          allow-oom
-- GIVES          {"1", or "0" if it was so already, the epoch if there is a walk to go on with, else "", news: {pool, due, version},
--                when the reaper is next wanted: {due, version}, else {}}
-- FAILS          INSTANCE_ENDED

local key = K.instance(instance)
local before, place, epoch = unpack(redis.call('HMGET', key, 'state', 'walk', 'epoch'))
if (before or '') == flag then return {'0', place and epoch or '', {}, {}} end
if before == 'ended' then
  return refuse('INSTANCE_ENDED', 'instance ' .. instance .. ' has ended, it cannot be ' .. (flag == '' and 'resumed' or flag))
end

epoch = tick()
redis.call('DEL', key)
redis.call('HSET', key, 'epoch', epoch, 'walk', '', 'since', text(now))
for name, value in pairs({state = flag, by = by, reason = reason}) do
  if value ~= '' then redis.call('HSET', key, name, value) end
end
local goes_on = walk(instance, most)
local due = next_expiry()
return {'1', goes_on and epoch or '', news(), due and {text(due), tick()} or {}}
