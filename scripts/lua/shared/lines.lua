-- Lines: the order in which pending jobs are claimed. A pool's line is its queue; a task that a gate holds back has one of its own
-- in each pool, "POOL/TASK", which a claim reads beside the queue as far as the gate lets it. A row says when it stands there.

local BAND = 4398046511104 -- 2^42 ms: one priority's stretch of scores in a line, 139 years long

local function rank(job)
  return text(tonumber(job.priority) * BAND + tonumber(job.run_at or job.created))
end

local function own_line(pool, task)
  return pool .. '/' .. task
end

local function line_of(job)
  return job.own_line and own_line(job.pool, job.task) or job.pool
end

-- The pool of a line, and the task whose own it is, or nil.
local function parts_of(line)
  local slash = string.find(line, '/', 1, true)
  if not slash then return line, nil end
  return string.sub(line, 1, slash - 1), string.sub(line, slash + 1)
end

-- The tasks that have a line of their own in a pool.
local function own_lines(pool)
  return redis.call('HGET', K.meta(), 'lines:' .. pool) or ''
end

local function list_line(pool, task)
  if lines_listed[own_line(pool, task)] then return end
  lines_listed[own_line(pool, task)] = true
  local listed = own_lines(pool)
  if string.find(' ' .. listed .. ' ', ' ' .. task .. ' ', 1, true) then return end
  redis.call('HSET', K.meta(), 'lines:' .. pool, listed == '' and task or listed .. ' ' .. task)
end

local function unlist_line(pool, task)
  lines_listed[own_line(pool, task)] = nil
  local kept = {}
  for listed in string.gmatch(own_lines(pool), '%S+') do
    if listed ~= task then kept[#kept + 1] = listed end
  end
  if #kept > 0 then
    redis.call('HSET', K.meta(), 'lines:' .. pool, table.concat(kept, ' '))
  else
    redis.call('HDEL', K.meta(), 'lines:' .. pool)
  end
end

-- A pending job is about to join its line: which one that is.
local function choose_line(job)
  if gates.any() and gates.has(job.task) then
    if not job.own_line then set(job, 'own_line', '1') end
    list_line(job.pool, job.task)
  elseif job.own_line then
    unset(job, 'own_line')
  end
end

-- A job can be claimed from `due` on, as far as its task's gate lets it.
local function queued_in(line, due)
  local pool, task = parts_of(line)
  queued(pool, task and math.max(due, gates.opens_at(task)) or due)
end

-- What is held may be claimed from an instant on: each pool that has jobs of it has to hear of that.
local function held_until(kind, name, due)
  local told = redis.call('HGETALL', K.meta())
  for at = 1, #told, 2 do
    local what, pool = string.match(told[at], '^(%a+):(.*)$')
    local concerned
    if kind == 'task' then
      concerned = what == 'lines' and string.find(' ' .. told[at + 1] .. ' ', ' ' .. name .. ' ', 1, true)
    else
      concerned = what == 'due' and (kind == 'tenant' or pool == name)
    end
    if concerned then queued(pool, due) end
  end
end
