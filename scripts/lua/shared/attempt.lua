-- Attempts live packed in the row: aN = "generation status cause fence start length chunks", wN = the worker.
-- At most one is open (status "running"); an ended one is never written again.

local function read_attempt(job, number)
  local packed = job.packed['a' .. number]
  if not packed then return nil end
  local generation, status, cause, fence, start, length, chunks =
    string.match(packed, '^(%d+) (%a+) ([%a_-]+) (%d+) (%d+) (%d+) (%d+)$')
  return {number = number, generation = generation, status = status, cause = cause, fence = fence,
    start = tonumber(start), length = length, chunks = tonumber(chunks)}
end

local function last_attempt(job)
  return read_attempt(job, job.attempts)
end

local function write_attempt(job, attempt)
  pack_field(job, 'a' .. attempt.number, table.concat({attempt.generation, attempt.status, attempt.cause, attempt.fence,
    text(attempt.start), attempt.length, text(attempt.chunks)}, ' '))
end

-- The attempt that was made under a fence, with its worker; of one that is not on record an empty one.
local function attempt_under(job, fence)
  for number = tonumber(job and job.attempts or 0), 1, -1 do
    local attempt = read_attempt(job, number)
    if attempt.fence == fence then
      attempt.worker = job.packed['w' .. number]
      return attempt
    end
  end
  return {worker = '', start = now}
end

-- A claim opens the next attempt, or goes on with the one that a finished chunk left open.
local function open_attempt(job, fence, worker)
  local attempt = last_attempt(job)
  if attempt and attempt.status == 'running' then
    attempt.fence = fence
  else
    set(job, 'attempts', text(job.attempts + 1))
    attempt = {number = job.attempts, generation = job.generation, status = 'running', cause = '-', fence = fence,
      start = now, length = '0', chunks = 0}
    began(job, now, 1)
  end
  write_attempt(job, attempt)
  pack_field(job, 'w' .. attempt.number, worker)
  return attempt.number
end

local function end_attempt(job, status, cause, summary, stack)
  local attempt = last_attempt(job)
  if not attempt or attempt.status ~= 'running' then return end
  attempt.status, attempt.cause = status, cause or '-'
  local length = math.max(0, now - attempt.start)
  attempt.length = text(length)
  write_attempt(job, attempt)
  ended(job, status == 'failed', attempt.start + length, length)
  if summary and summary ~= '' then
    redis.call('HSET', K.errors(job.id), attempt.number, summary)
    if stack and stack ~= '' then redis.call('HSET', K.errors(job.id), attempt.number .. 's', stack) end
  end
end

-- What an attempt says of what it asked ('q') and was answered ('p'): beside its error, and with it gone.
local function say_with_attempt(job, mark, words)
  if words ~= '' then redis.call('HSET', K.errors(job.id), job.attempts .. mark, words) end
end

-- A row handed back before its handler started was no attempt: its number is free again.
local function forget_attempt(job)
  local attempt = last_attempt(job)
  if attempt.chunks > 0 then return end
  began(job, attempt.start, -1)
  drop_field(job, 'a' .. attempt.number)
  drop_field(job, 'w' .. attempt.number)
  redis.call('HDEL', K.errors(job.id), attempt.number .. 'q', attempt.number .. 'p')
  set(job, 'attempts', text(job.attempts - 1))
  if job.attempts == '0' then unset(job, 'started') end
end
