-- Progress of a background task. `done` moves only with committed work; each commit leaves a sample "working_ms:done" from
-- which readers estimate what is left. Working time is counted only while the job runs, so queue and pause do not slow it, and
-- while it waits because it asked to, between its chunks and before it tries again: that is its own pace.

local progress = {}

local SAMPLES, PARTS = 64, 32
local LINES, LINE_BYTES = 1000, 256 * 1024 -- the ring of log lines

local function working_ms(job)
  local busy, since = unpack(redis.call('HMGET', K.progress(job.id), 'busy', 'since'))
  return tonumber(busy or 0) + (since and math.max(0, now - since) or 0)
end

-- How long the lines are together; those of a version that did not count are counted now.
local function bytes_of_lines(job)
  local counted = redis.call('HGET', K.progress(job.id), 'bytes')
  if counted then return tonumber(counted) end
  local bytes = 0
  for _, line in ipairs(redis.call('LRANGE', K.lines(job.id), 0, -1)) do bytes = bytes + #line end
  return bytes
end

-- New lines push the oldest out. Each has its number, by its place before the last one, and so have the `skipped` ones before them,
-- which nobody sees: they have pushed out all that stood there.
function progress.log(job, lines, skipped)
  if #lines == 0 then return end
  local key = K.lines(job.id)
  if skipped > 0 then redis.call('DEL', key) end
  local bytes = skipped > 0 and 0 or bytes_of_lines(job)
  for at, line in ipairs(lines) do
    lines[at] = text(now) .. ' ' .. line
    bytes = bytes + #lines[at]
  end
  local many = redis.call('RPUSH', key, unpack(lines))
  while many > 1 and (many > LINES or bytes > LINE_BYTES) do
    bytes, many = bytes - #redis.call('LPOP', key), many - 1
  end
  redis.call('HINCRBY', K.progress(job.id), 'lines', #lines + skipped)
  redis.call('HSET', K.progress(job.id), 'bytes', text(bytes))
end

-- A retry begins at the last checkpoint, and watchers hear that: a new attempt, not the next chunk of an open one.
local function say_resumed(job)
  if job.attempts == '1' or last_attempt(job).chunks > 0 then return end
  local done, total = unpack(redis.call('HMGET', K.progress(job.id), 'done', 'total'))
  if tonumber(done or 0) > 0 then
    progress.log(job, {'attempt ' .. job.attempts .. ' goes on from ' .. done .. (total and ' of ' .. total or '')}, 0)
  elseif job.cursor then
    progress.log(job, {'attempt ' .. job.attempts .. ' goes on from the last checkpoint'}, 0)
  end
end

function progress.start(job)
  if not job.background then return end
  redis.call('HSET', K.progress(job.id), 'since', text(now))
  say_resumed(job)
end

function progress.stop(job)
  if not job.background then return end
  redis.call('HSET', K.progress(job.id), 'busy', text(working_ms(job)))
  redis.call('HDEL', K.progress(job.id), 'since', 'doing')
end

function progress.rest(job, delay)
  if job.background then redis.call('HINCRBY', K.progress(job.id), 'busy', text(delay)) end
end

-- At most one sample, the oldest, stays for each part of the work done, so a task of any length keeps its whole curve evenly
-- in a bounded place.
local function thin(samples, done)
  local kept, last = {}, -1
  for sample, at in string.gmatch(samples, '(%S+:(%S+))') do
    local part = math.floor(at * PARTS / math.max(1, done))
    if part > last then kept[#kept + 1], last = sample, part end
  end
  return table.concat(kept, ' ')
end

function progress.show(job, field, value)
  if value ~= '' then redis.call('HSET', K.progress(job.id), field, value) end
end

function progress.commit(job, done, total)
  local key = K.progress(job.id)
  progress.show(job, 'total', total)
  if done == '' then return end
  done = text(math.max(tonumber(done), tonumber(redis.call('HGET', key, 'done') or 0))) -- it never goes back
  local samples = redis.call('HGET', key, 'samples') or ''
  local _, many = string.gsub(samples, '%S+', '')
  if many >= SAMPLES then samples = thin(samples, tonumber(done)) end
  local sample = text(working_ms(job)) .. ':' .. done
  redis.call('HSET', key, 'done', done, 'samples', samples == '' and sample or samples .. ' ' .. sample)
  redis.call('HDEL', key, 'doing')
end

-- A task that succeeded has done all of its total, if it ever named one.
function progress.finish(job)
  local total = redis.call('HGET', K.progress(job.id), 'total')
  if total then progress.commit(job, total, '') end
end

-- Other arguments are other work: what was done does not count for it. Its log goes on.
function progress.restart(job)
  redis.call('HDEL', K.progress(job.id), 'done', 'total', 'doing', 'samples', 'busy', 'message', 'stage', 'warnings')
end
