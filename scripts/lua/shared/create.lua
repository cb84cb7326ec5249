-- Make a job: the row, its place in the queue, its places among those it belongs to, its idempotency entry.

-- It is pending, unless its instance has it paused or canceled at once. `fields` is a flat list of long names and values; blobs
-- among them find their own place, and a latest start may be counted from now.
local function create(id, task, pool, run_at, fields)
  local job = new_row(id)
  job.pool = pool
  set(job, 'task', task)
  set(job, 'created', text(now))
  if pool ~= DEFAULTS.pool then set(job, 'pool', pool) end
  if run_at ~= now then set(job, 'run_at', text(run_at)) end
  for at = 1, #fields, 2 do
    if IS_BLOB[fields[at]] then put_blob(job, fields[at], fields[at + 1]) else set(job, fields[at], fields[at + 1]) end
  end
  if job.start_by and string.sub(job.start_by, 1, 1) == '+' then set(job, 'start_by', text(instant(job.start_by))) end
  local state = admitted(job)
  if state ~= 'pending' then arrive(job, state) end
  if state == 'canceled' then clear_word(job) end
  save(job)
  tell_limit(job)
  join_set(job)
  redis.call('RPUSH', K.journal(task), id)
  count(task, state, 1)
  join_groups(job)
  mark_root(job)
  if job.unique and not (ENDED[state] and job.unique_mode == 'active') then redis.call('HSET', K.unique(), job.unique, id) end
  return job
end
