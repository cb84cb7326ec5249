-- Make a job: the row, its place in the queue, its places among those it belongs to, its idempotency entry.

-- It is pending, unless its instance has it paused or canceled at once. `fields` is a flat list of long names and values; blobs
-- among them find their own place, a latest start may be counted from now, and `task_rate` is its task's. `rate` is that of a task
-- of which nothing is said; nil leaves it as it is.
local function create(id, task, pool, run_at, fields, rate)
  local job = new_row(id)
  job.pool = pool
  set(job, 'task', task)
  set(job, 'created', text(now))
  if pool ~= DEFAULTS.pool then set(job, 'pool', pool) end
  if run_at ~= now then set(job, 'run_at', text(run_at)) end
  for at = 1, #fields, 2 do
    local name, value = fields[at], fields[at + 1]
    if name == 'task_rate' then rate = value elseif IS_BLOB[name] then put_blob(job, name, value) else set(job, name, value) end
  end
  if job.start_by and string.sub(job.start_by, 1, 1) == '+' then set(job, 'start_by', text(instant(job.start_by))) end
  local state = admitted(job)
  if state ~= 'pending' then arrive(job, state) end
  if state == 'canceled' then clear_word(job) end
  save(job)
  if rate then gates.tell_rate(task, rate) end
  keyed.tell_limit(job)
  join_set(job)
  save(job) -- it may have been given another line
  redis.call('RPUSH', K.journal(task), id)
  count(task, state, 1)
  join_groups(job)
  bound.take_over(job)
  mark_root(job)
  if job.unique and not (ENDED[state] and job.unique_mode == 'active') then redis.call('HSET', K.unique(), job.unique, id) end
  return job
end
