-- Progress of a background task. `done` moves only with committed work; each commit leaves a sample "working_ms:done" from
-- which readers estimate what is left. Working time is counted only while the job runs, so queue and pause do not slow it.

local SAMPLES = 64
local LINES = 1000

local function working_ms(job)
  local busy, since = unpack(redis.call('HMGET', K.progress(job.id), 'busy', 'since'))
  return tonumber(busy or 0) + (since and math.max(0, now - since) or 0)
end

local function write_line(job, line)
  redis.call('RPUSH', K.lines(job.id), text(now) .. ' ' .. line)
  redis.call('LTRIM', K.lines(job.id), -LINES, -1)
  redis.call('HINCRBY', K.progress(job.id), 'lines', 1)
end

-- A retry begins at the last checkpoint, and watchers hear that: a new attempt, not the next chunk of an open one.
local function say_resumed(job)
  if job.attempts == '1' or last_attempt(job).chunks > 0 then return end
  local done, total = unpack(redis.call('HMGET', K.progress(job.id), 'done', 'total'))
  if tonumber(done or 0) > 0 then
    write_line(job, 'attempt ' .. job.attempts .. ' goes on from ' .. done .. (total and ' of ' .. total or ''))
  elseif job.cursor then
    write_line(job, 'attempt ' .. job.attempts .. ' goes on from the last checkpoint')
  end
end

local function start_working(job)
  if not job.background then return end
  redis.call('HSET', K.progress(job.id), 'since', text(now))
  say_resumed(job)
end

local function stop_working(job)
  if not job.background then return end
  redis.call('HSET', K.progress(job.id), 'busy', text(working_ms(job)))
  redis.call('HDEL', K.progress(job.id), 'since', 'doing')
end

-- Old samples thin out by half, so a task of any length keeps its whole curve in a bounded place.
local function thin(samples)
  local kept, odd = {}, true
  for sample in string.gmatch(samples, '%S+') do
    if odd then kept[#kept + 1] = sample end
    odd = not odd
  end
  return table.concat(kept, ' ')
end

local function show_progress(job, field, value)
  if value ~= '' then redis.call('HSET', K.progress(job.id), field, value) end
end

local function commit_progress(job, done, total)
  local key = K.progress(job.id)
  show_progress(job, 'total', total)
  if done == '' then return end
  done = text(math.max(tonumber(done), tonumber(redis.call('HGET', key, 'done') or 0))) -- it never goes back
  local samples = redis.call('HGET', key, 'samples') or ''
  local _, many = string.gsub(samples, '%S+', '')
  if many >= SAMPLES then samples = thin(samples) end
  local sample = text(working_ms(job)) .. ':' .. done
  redis.call('HSET', key, 'done', done, 'samples', samples == '' and sample or samples .. ' ' .. sample)
  redis.call('HDEL', key, 'doing')
end

-- A task that succeeded has done all of its total, if it ever named one.
local function finish_progress(job)
  local total = redis.call('HGET', K.progress(job.id), 'total')
  if total then commit_progress(job, total, '') end
end

-- Other arguments are other work: what was done does not count for it. Its log goes on.
local function restart_progress(job)
  redis.call('HDEL', K.progress(job.id), 'done', 'total', 'doing', 'samples', 'busy', 'message')
end
