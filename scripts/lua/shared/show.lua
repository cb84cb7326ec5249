-- A job as readers get it: its row and all that is kept beside it, and what blocks it by the claim's own rule.

local HELD = {state_paused = true, instance_suspended = true, instance_ended = true}
local RETRIABLE = {state_failed = true, state_dead = true, state_canceled = true}

local function flat(map)
  local list = {}
  for name, value in pairs(map) do
    if type(value) == 'string' then list[#list + 1], list[#list + 2] = name, value end
  end
  return list
end

-- {row, packed, lease expiry, errors, progress, lines, blocker, what that is about, the flag of the instance that holds it back
-- or whose end would cancel it again, history}, defaults left out; all but the blocker, what it is about, the lines and the history are flat lists of names and values.
-- {} when there is no such job.
-- `lines` and `deeds` are how many log lines and entries of its history it shows, the newest.
local function shown(id, lines, deeds)
  local job = load(id)
  if not job then return {} end
  local packed = flat(job.packed)
  for _, name in ipairs(BLOBS) do job[name] = job[name] and get_blob(job, name) end
  local why = verdict_on(job) or ''
  local flagged = HELD[why] and job.instance or RETRIABLE[why] and job.cleared_on_end and job.instance
  return {flat(job), packed, redis.call('ZSCORE', K.running(), id) or '',
    redis.call('HGETALL', K.errors(id)),
    job.background and redis.call('HGETALL', K.progress(id)) or {},
    job.background and lines > 0 and redis.call('LRANGE', K.lines(id), -lines, -1) or {},
    why, facts_of(job, why), flagged and redis.call('HGETALL', K.instance(job.instance)) or {},
    deeds > 0 and redis.call('LRANGE', K.history(id), -deeds, -1) or {}}
end
