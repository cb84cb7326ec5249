-- Jobs as they stand, with their long values, errors and progress; and what blocks each, by the claim's own rule.
--
-- KEYS home   hash  the tenant's meta
-- ARGV lines  int   how many log lines of background tasks, the newest
-- ARGV deeds  int   how many entries of what people did to each, the newest
-- REST id
-- FLAGS no-writes
-- GIVES       {now, for each: {} or {row, packed, lease expiry, errors, progress, lines, blocker, the flag of the instance that
--             holds it back, history}}; defaults left out; all but the blocker and the history are flat lists of names and values

local function flat(map)
  local list = {}
  for name, value in pairs(map) do
    if type(value) == 'string' then list[#list + 1], list[#list + 2] = name, value end
  end
  return list
end

local HELD = {state_paused = true, instance_suspended = true, instance_ended = true}

local answers = {text(now)}
for at = FIRST, #ARGV do
  local job = load(ARGV[at])
  if not job then
    answers[#answers + 1] = {}
  else
    local packed = flat(job.packed)
    for _, name in ipairs(BLOBS) do job[name] = job[name] and get_blob(job, name) end
    local why = blocker(job) or ''
    answers[#answers + 1] = {flat(job), packed, redis.call('ZSCORE', K.running(), job.id) or '',
      redis.call('HGETALL', K.errors(job.id)),
      job.background and redis.call('HGETALL', K.progress(job.id)) or {},
      job.background and lines > 0 and redis.call('LRANGE', K.lines(job.id), -lines, -1) or {},
      why, HELD[why] and job.instance and redis.call('HGETALL', K.instance(job.instance)) or {},
      deeds > 0 and redis.call('LRANGE', K.history(job.id), -deeds, -1) or {}}
  end
end
return answers
