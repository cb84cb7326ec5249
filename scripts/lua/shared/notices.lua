-- Deaths that somebody may want to be told of, gathered by task and reason: since when there is something to tell ("-" when all
-- is told), and until when it is too soon to tell more. They ask for visits as a pool does, under a name that no pool can have.

local NOTICES, TELLER, GATHER_MS = '@notices', 'tenure.notify', 10000

local function to_tell(value)
  local since, quiet = string.match(value or '- 0', '^(%S+) (%d+)$')
  return tonumber(since), tonumber(quiet)
end

local function notice_due(since, quiet)
  return since and math.max(since + GATHER_MS, quiet) or quiet
end

-- The death of one who tells of deaths is not told.
local function mourn(job)
  if job.task == TELLER then return end
  local group = job.task .. '|' .. job.dead_reason
  local since, quiet = to_tell(redis.call('HGET', K.notices(), group))
  if since then return end
  redis.call('HSET', K.notices(), group, text(now) .. ' ' .. text(quiet))
  queued(NOTICES, notice_due(now, quiet))
end

-- When the next visit is wanted, or nil.
local function next_notice()
  local soonest = math.huge
  for _, value in ipairs(redis.call('HVALS', K.notices())) do soonest = math.min(soonest, notice_due(to_tell(value))) end
  return soonest < math.huge and soonest or nil
end

-- Where nothing is dead any more there is nothing to tell.
function forget_notices()
  if redis.call('EXISTS', K.stopped('dead')) == 1 then return end
  redis.call('DEL', K.notices())
  redis.call('HDEL', K.meta(), 'due:' .. NOTICES)
end
