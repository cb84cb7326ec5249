-- Remove jobs whole: row, blobs, errors, history, progress, lines, idempotency entry, count, and their places in journals.

-- Cut the head of a task's journal as far as its jobs are gone; `gone` knows those of this operation.
local function trim_journal(task, gone, most)
  local journal, cut = K.journal(task), 0
  for _, id in ipairs(redis.call('LRANGE', journal, 0, most - 1)) do
    if not gone[id] and redis.call('EXISTS', K.row(id)) == 1 then break end
    cut = cut + 1
  end
  if cut == 0 then return end
  redis.call('LTRIM', journal, cut, -1)
  redis.call('HINCRBY', K.meta(), 'cut:' .. task, cut)
end

-- A job that does not go (it waits for a person) stands in front of those that have gone. When too many have, the head of the
-- journal is cut and what stays of it is set aside, where it keeps its position; a slice a call, so that no call is long.
local SLACK, HEAD = 256, 512

local function close_gaps(task, living)
  local journal, aside = K.journal(task), K.aside(task)
  if redis.call('LLEN', journal) + redis.call('ZCARD', aside) <= living + SLACK then return end
  local cut, head, stay = cut_of(task), redis.call('LRANGE', journal, 0, HEAD - 1), {}
  for at, id in ipairs(head) do
    if redis.call('EXISTS', K.row(id)) == 1 then stay[#stay + 1], stay[#stay + 2] = text(cut + at - 1), id end
  end
  redis.call('LTRIM', journal, #head, -1)
  if #stay > 0 then redis.call('ZADD', aside, unpack(stay)) end
  redis.call('HINCRBY', K.meta(), 'cut:' .. task, #head)
end

-- `many` jobs of a task have gone, those in `gone`; with its last one goes all that is remembered of it. The counts of this
-- operation are not written yet.
local function tidy_task(task, many, gone)
  local living = 0
  for _, state in ipairs(STATES) do
    local field = task .. '|' .. state
    living = living + (redis.call('HGET', K.counts(), field) or 0) + (counts[field] or 0)
  end
  if living == 0 then
    redis.call('HDEL', K.figures(), 'claimed|' .. task)
    redis.call('DEL', K.journal(task), K.aside(task))
    redis.call('HDEL', K.meta(), 'cut:' .. task)
  else
    trim_journal(task, gone, many + 2)
    close_gaps(task, living + many)
  end
end

local function forget(ids)
  local keys, gone, tasks = {}, {}, {}
  if #ids > 0 then redis.call('HINCRBY', K.meta(), 'gone', #ids) end
  for _, id in ipairs(ids) do
    local job = load(id)
    if job then
      free_unique(job)
      leave_set(job)
      leave_groups(job)
      bound.forget(job)
      drop(K.aside(job.task), id)
      count(job.task, job.state, -1)
      tasks[job.task] = (tasks[job.task] or 0) + 1
      gone[id] = true
      keys[#keys + 1], keys[#keys + 2], keys[#keys + 3] = K.row(id), K.errors(id), K.history(id)
      for _, name in ipairs(BLOBS) do
        if job[name] == '' then keys[#keys + 1] = own_key(job, name) end
      end
      if job.background then keys[#keys + 1], keys[#keys + 2] = K.progress(id), K.lines(id) end
    end
  end
  if #keys > 0 then redis.call('DEL', unpack(keys)) end
  for task, many in pairs(tasks) do tidy_task(task, many, gone) end
end
