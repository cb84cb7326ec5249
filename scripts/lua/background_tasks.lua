-- The tasks whose jobs are background tasks, as the oldest or the newest job of each tells: so a list of them need not read
-- through all other jobs.
--
-- KEYS home  hash  the tenant's meta
-- FLAGS no-writes
-- GIVES      the tasks, in no order

local LOOK = 10 -- how many entries of a journal's end are tried: of some the job has gone already

-- Whether the first job that is still there, of those an end of the journal has, is a background task.
local function is_background(ids)
  for _, id in ipairs(ids) do
    local job = load(id)
    if job then return job.background ~= nil end
  end
  return false
end

local function newest(task)
  local ids = redis.call('LRANGE', K.journal(task), -LOOK, -1)
  for at = 1, math.floor(#ids / 2) do ids[at], ids[#ids + 1 - at] = ids[#ids + 1 - at], ids[at] end
  return ids
end

local function oldest(task)
  local stayed = redis.call('ZRANGE', K.aside(task), 0, 0)
  return #stayed > 0 and stayed or redis.call('LRANGE', K.journal(task), 0, LOOK - 1)
end

local seen, tasks = {}, {}
for _, field in ipairs(redis.call('HKEYS', K.counts())) do
  local task = string.match(field, '^(.*)|')
  if not seen[task] then
    seen[task] = true
    if is_background(newest(task)) or is_background(oldest(task)) then tasks[#tasks + 1] = task end
  end
end
return tasks
