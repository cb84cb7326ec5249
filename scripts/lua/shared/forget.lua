-- Remove jobs whole: row, blobs, errors, history, progress, lines, idempotency entry, count, and their places at the journals' heads.

local KEEP_MS, KEEP_COUNT = 86400000, 100000

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

-- `going` of a task's jobs go; with its last one goes what is remembered of it.
-- A job that does not go (it waits for a person) stands in front of those that have gone. When too many have, the head of the
-- journal is cut and what stays of it is set aside, where it keeps its position; a slice a call, so that no call is long.
local SLACK, HEAD = 256, 512

local function close_gaps(task, going)
  local journal, living = K.journal(task), 0
  for _, state in ipairs(STATES) do
    living = living + (redis.call('HGET', K.counts(), task .. '|' .. state) or 0)
  end
  if living == going then redis.call('HDEL', K.figures(), 'claimed|' .. task) end
  local aside = K.aside(task)
  if redis.call('LLEN', journal) + redis.call('ZCARD', aside) <= living + SLACK then return end
  local cut, head, stay = cut_of(task), redis.call('LRANGE', journal, 0, HEAD - 1), {}
  for at, id in ipairs(head) do
    if redis.call('EXISTS', K.row(id)) == 1 then stay[#stay + 1], stay[#stay + 2] = text(cut + at - 1), id end
  end
  redis.call('LTRIM', journal, #head, -1)
  if #stay > 0 then redis.call('ZADD', aside, unpack(stay)) end
  redis.call('HINCRBY', K.meta(), 'cut:' .. task, #head)
end

local function forget(ids)
  local keys, gone, tasks = {}, {}, {}
  for _, id in ipairs(ids) do
    local job = load(id)
    if job then
      free_unique(job)
      leave_set(job)
      leave_groups(job)
      drop(K.aside(job.task), id)
      count(job.task, job.state, -1)
      tasks[job.task] = (tasks[job.task] or 0) + 1
      gone[id] = true
      keys[#keys + 1], keys[#keys + 2], keys[#keys + 3] = K.row(id), K.errors(id), K.history(id)
      for _, name in ipairs(BLOBS) do
        if job[name] == '' then keys[#keys + 1] = K.blob(SHORT[name], id) end
      end
      if job.background then keys[#keys + 1], keys[#keys + 2] = K.progress(id), K.lines(id) end
    end
  end
  if #keys > 0 then redis.call('DEL', unpack(keys)) end
  for task, many in pairs(tasks) do
    trim_journal(task, gone, many + 2)
    close_gaps(task, many)
  end
end

-- Let the oldest succeeded jobs go: those over the cap and those over their time, at most two for each of the `made` that have
-- just come, so the list keeps its bound and no call is long.
local function forget_old_successes(made)
  if made == 0 then return end
  local list = K.succeeded()
  local over = redis.call('LLEN', list) - KEEP_COUNT
  local old = {}
  for at, id in ipairs(redis.call('LRANGE', list, 0, 2 * made - 1)) do
    local finished = at > over and redis.call('HGET', K.row(id), SHORT.finished)
    if finished and tonumber(finished) > now - KEEP_MS then break end
    old[at] = id
  end
  if #old == 0 then return end
  redis.call('LTRIM', list, #old, -1)
  redis.call('HINCRBY', K.meta(), 'cut:+ok', #old)
  forget(old)
end
