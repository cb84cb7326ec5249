-- The tasks whose jobs are background tasks, as the oldest or the newest job of each tells: so a list of them need not read
-- through all other jobs.
--
-- KEYS home  hash  the tenant's meta
-- FLAGS no-writes
-- GIVES      the tasks, in no order

local LOOK = 10 -- how many entries of a journal's end are tried: of some the job has gone already

local function is_background(task, at, step)
  for tried = 0, LOOK - 1 do
    local id = redis.call('LINDEX', K.journal(task), at + step * tried)
    if not id then return false end
    local job = load(id)
    if job then return job.background ~= nil end
  end
  return false
end

local seen, tasks = {}, {}
for _, field in ipairs(redis.call('HKEYS', K.counts())) do
  local task = string.match(field, '^(.*)|')
  if not seen[task] then
    seen[task] = true
    if is_background(task, -1, -1) or is_background(task, 0, 1) then tasks[#tasks + 1] = task end
  end
end
return tasks
