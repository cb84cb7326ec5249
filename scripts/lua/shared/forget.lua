-- Remove a job whole: row, blobs, errors, progress, lines, idempotency entry, count, and its place at the journal's head.

local function trim_journal(task)
  local journal = K.journal(task)
  for _ = 1, 3 do
    local head = redis.call('LINDEX', journal, 0)
    if not head or redis.call('EXISTS', K.row(head)) == 1 then return end
    redis.call('LPOP', journal)
    redis.call('HINCRBY', K.meta(), 'cut:' .. task, 1)
  end
end

local function forget(id)
  local job = load(id)
  if not job then return end
  free_unique(job)
  for _, name in ipairs(BLOBS) do
    if job[name] == '' then redis.call('DEL', K.blob(SHORT[name], id)) end
  end
  redis.call('DEL', K.row(id), K.errors(id))
  if job.background then redis.call('DEL', K.progress(id), K.lines(id)) end
  leave_set(job)
  count(job.task, job.state, -1)
  trim_journal(job.task)
end

local KEEP_MS, KEEP_COUNT = 86400000, 100000

-- Let the oldest succeeded jobs go, at most two: called once for each job that succeeds, so the list keeps its bound.
local function forget_old_successes()
  local list = K.succeeded()
  for _ = 1, 2 do
    local id = redis.call('LINDEX', list, 0)
    if not id then return end
    local finished = redis.call('HGET', K.row(id), SHORT.finished)
    local over = redis.call('LLEN', list) > KEEP_COUNT
    if finished and not over and tonumber(finished) > now - KEEP_MS then return end
    redis.call('LPOP', list)
    redis.call('HINCRBY', K.meta(), 'cut:+ok', 1)
    forget(id)
  end
end
