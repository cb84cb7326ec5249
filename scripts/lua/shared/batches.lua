-- Batches: what a person has one verb done to, many jobs. A batch is written down with its jobs first, begun on a person's word, and
-- worked off in slices; where it is stands beside it, so that anybody can go on with it.

local KEEP_BATCHES = 100
local DRIVE_MS = 2000 -- a batch of which nobody has worked off a slice for so long is the reaper's

-- A batch that is a new one too many lets the oldest go that do not run; a few a call, so that no call is long.
local function forget_old_batches()
  local over = redis.call('ZCARD', K.batches()) - KEEP_BATCHES
  if over <= 0 then return end
  for _, id in ipairs(redis.call('ZRANGE', K.batches(), 0, 9)) do
    if over > 0 and redis.call('HGET', K.batch(id), 'state') ~= 'running' then
      redis.call('DEL', K.batch(id), K.batch_jobs(id), K.batch_skips(id))
      redis.call('ZREM', K.batches(), id)
      over = over - 1
    end
  end
end

local function skip_in_batch(id, job_id, code)
  redis.call('HSET', K.batch_skips(id), job_id, code)
  redis.call('HINCRBY', K.batch(id), 'skipped:' .. code, 1)
end

-- The reaper's visit: answers whether there is something to work off, that nobody works off.
local function visit_batch(id)
  if redis.call('HGET', K.batch(id), 'state') ~= 'running' then
    redis.call('ZREM', K.batch_work(), id)
    return false
  end
  redis.call('ZADD', K.batch_work(), text(now + DRIVE_MS), id)
  return true
end
