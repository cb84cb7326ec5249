-- Background tasks that are bound to a business row of the user's. Whose row may be behind stands in a set by when to look; how far
-- it follows stands in the task's progress: `bind_rev` the revision that was written, `bind_clock` the tenant clock of that write,
-- `bind_at` when; `bind_wait` until when nobody else touches it, because it is being written, was just written, or writing it failed
-- (`bind_error`, `bind_tries`); `bind_over` that the row tells of a later task. Visits are asked for as by a pool, under a name that no pool can have.

local bound = {QUEUE = '@bindings', APART_MS = 250}
local LOOK_MS = 1000 -- one that runs is looked at so often; writes of one are APART_MS apart

local function record_of(job)
  return job.binding .. '|' .. get_blob(job, 'record')
end

-- The row tells of the task that was accepted for it last, or begun anew by a person.
function bound.take_over(job)
  if not job.binding then return end
  local before = redis.call('HGET', K.bound_to(), record_of(job))
  if before and before ~= job.id then
    redis.call('ZREM', K.bound(), before)
    redis.call('HSET', K.progress(before), 'bind_over', '1')
  end
  redis.call('HSET', K.bound_to(), record_of(job), job.id)
  redis.call('HDEL', K.progress(job.id), 'bind_over')
end

function bound.forget(job)
  if not job.binding then return end
  redis.call('ZREM', K.bound(), job.id)
  if redis.call('HGET', K.bound_to(), record_of(job)) == job.id then redis.call('HDEL', K.bound_to(), record_of(job)) end
end

function bound.is_current(job)
  return redis.call('HGET', K.bound_to(), record_of(job)) == job.id
end

-- The task has changed, so its row is behind.
function bound.owe(job)
  if not job.binding or not bound.is_current(job) then return end
  local due = math.max(now, tonumber(redis.call('HGET', K.progress(job.id), 'bind_wait') or 0))
  local known = tonumber(redis.call('ZSCORE', K.bound(), job.id) or math.huge)
  if due < known then redis.call('ZADD', K.bound(), text(due), job.id) end
  queued(bound.QUEUE, math.min(due, known))
end

-- Nothing is to be written now. One that runs is looked at again: its reports tell nobody.
function bound.rest(job)
  if job.state == 'running' then
    redis.call('ZADD', K.bound(), text(now + LOOK_MS), job.id)
  else
    redis.call('ZREM', K.bound(), job.id)
  end
end

-- When the next look is wanted, or nil.
function bound.due()
  local first = redis.call('ZRANGE', K.bound(), 0, 0, 'WITHSCORES')[2]
  return first and tonumber(first)
end
