-- The walk over the jobs of an instance, which brings them after its flag: a step a call, so that no call is long. Where it is stands
-- beside the flag, so that anybody can go on with it.

local WALK_MS = 1000 -- a walk on which nobody has taken a step for so long is the reaper's
local KEEP_FLAG_MS = 86400000

-- Time that is left stays; of a running job nothing is.
local function pause(job)
  if job.state == 'running' then set(job, 'run_at', text(now)) end
  withdraw(job, 'pause', 'paused', word_on(job))
end

local function resume(job)
  set(job, 'generation', text(job.generation + 1))
  wait_until(job, 'resume', math.min(now + (job.remaining or 0), BAND - 1))
  note(job, 'resume', word_on(job))
  conclude(job)
end

local function clear(job)
  withdraw(job, 'cancel', 'canceled', clear_word(job))
end

-- A pending job that will not be claimed as it is goes where it belongs, whoever meets it first. Answers whether it was one.
local function put_away(job, blocked)
  local away = ({expired = expire, instance_suspended = pause, instance_ended = clear})[blocked]
  if away then away(job) end
  return away ~= nil
end

-- Bring one job after the flag. What has ended stays as it ended.
local function follow(job, flag)
  if flag == 'suspended' then
    if job.pausable and MOVES.pause[job.state] then pause(job) end
  elseif flag == 'ended' and job.cleared_on_end then
    if not ENDED[job.state] then clear(job) end
  elseif job.state == 'paused' then
    resume(job)
  end
end

-- Whether the walk goes on, and what becomes of the flag when it does not.
local function note_walk(instance, flag, place)
  local key = K.instance(instance)
  if place then
    redis.call('HSET', key, 'walk', place)
    redis.call('ZADD', K.instances(), text(now + WALK_MS), instance)
  elseif flag == 'ended' then
    redis.call('HDEL', key, 'walk')
    redis.call('ZADD', K.instances(), text(now + KEEP_FLAG_MS), instance)
  else
    redis.call('ZREM', K.instances(), instance)
    if flag then redis.call('HDEL', key, 'walk') else redis.call('DEL', key) end
  end
end

-- Jobs stand in the order they were made; the next ones are those behind the last, or, if that has gone, from its time on: a few
-- are then looked at again, and none is passed over.
local function after(group, place)
  local made, id = string.match(place, '^(%S+) (%S+)$')
  if not id then return 0 end
  local rank = redis.call('ZRANK', group, id)
  return rank and rank + 1 or redis.call('ZCOUNT', group, '-inf', '(' .. made)
end

-- Take a step: look at so many jobs at most. Answers whether the walk goes on.
local function walk(instance, most)
  local flag, place = unpack(redis.call('HMGET', K.instance(instance), 'state', 'walk'))
  if not place then return false end
  local group = K.group('instance', instance)
  local from = after(group, place)
  local found = redis.call('ZRANGE', group, from, from + most - 1, 'WITHSCORES')
  for at = 1, #found, 2 do
    local job = load(found[at])
    if job then follow(job, flag) end
  end
  local goes_on = #found == 2 * most
  note_walk(instance, flag, goes_on and found[#found] .. ' ' .. found[#found - 1] or nil)
  return goes_on
end

-- The reaper's visit: a flag that has ended goes when it is a day old and no job is left that could ask for it. Answers where a
-- walk is that nobody drives, if there is one.
local function visit(instance)
  local flag, place = unpack(redis.call('HMGET', K.instance(instance), 'state', 'walk'))
  if place then
    redis.call('ZADD', K.instances(), text(now + WALK_MS), instance)
  elseif flag == 'ended' and redis.call('EXISTS', K.group('instance', instance)) == 1 then
    note_walk(instance, flag)
  else
    redis.call('DEL', K.instance(instance))
    redis.call('ZREM', K.instances(), instance)
  end
  return place
end
