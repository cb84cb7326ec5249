-- The execution log: a list for each schedule and UTC month, with an entry for each planned fire that was skipped, and for each
-- round of a fired job that has ended. It is written where that happens, in the same script, so it needs no replay. An entry begins
-- with the tenant clock, which is its time and its place; what can be worked out from the rest (the event's id, the job's) is left
-- to who reads it.
--
-- clock S trigger instant until count reason           skipped; until is "-" where it is one instant
-- clock E trigger instant generation                   executed
-- clock F trigger instant generation executed reason   failed, or was canceled; executed is "0" if it never began
--
-- E and F may have a message, in a line of its own. (A stream would take 4 KB from its first entry on, and most of these have few.)

local ENTRY_BYTES = 400 -- so much of an error is kept
local KEEP_ENTRIES = 431 * 86400 -- thirteen months after the last day of its month; nothing depends on it but memory

local log = {}

-- A log that cannot be written (somebody put another value in its place) changes nothing of what it tells of.
local function write(month, job_key, entry)
  local key = K.entries(month, job_key)
  local length = redis.pcall('RPUSH', key, tick() .. ' ' .. entry)
  if type(length) == 'table' then
    redis.call('HINCRBY', K.meta(), 'unlogged', 1)
  else
    if length == 1 then redis.call('EXPIRE', key, KEEP_ENTRIES) end
    books.written(key, length == 1)
  end
end

function log.skip(job_key, trigger, reason, month, first, last, count)
  write(month, job_key, table.concat({'S', trigger, first, count == '1' and '-' or last, count, reason}, ' '))
end

-- What the newest entry becomes when it tells of these instants too; nil: they are not of its minute, or not of its kind.
function log.grown(job_key, trigger, reason, month, last, count)
  local head, of, from, many, why = string.match(books.newest(K.entries(month, job_key)), '^(%d+ S (%S+) (%d+)) %S+ (%d+) (%S+)$')
  if of == trigger and why == reason and books.same_minute(from, last) then
    return table.concat({head, last, text(many + count), why}, ' ')
  end
end

local function last_words(job)
  if job.state == 'canceled' or last_attempt(job) and last_attempt(job).status == 'skipped' then return get_blob(job, 'reason') end
  return redis.call('HGET', K.errors(job.id), job.attempts) or ''
end

-- A job that was fired for a planned instant has come to its end.
function log.finish(job)
  local trigger, job_key = string.match(get_blob(job, 'fire'), '^(.-):(.*)$')
  local parts = {job.state == 'succeeded' and 'E' or 'F', trigger, job.fire_time, job.generation}
  if job.state ~= 'succeeded' then
    parts[5], parts[6] = job.attempts == '0' and '0' or '1', job.dead_reason or job.state
  end
  local entry, words = table.concat(parts, ' '), string.sub(last_words(job), 1, ENTRY_BYTES)
  if words ~= '' then entry = entry .. '\n' .. words end
  write(job.log_month, job_key, entry)
end
