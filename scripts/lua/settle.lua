-- End attempts, each with an outcome, each by its holder only. The same outcome sent again is accepted and changes nothing.
--
-- KEYS home   hash  the tenant's meta
-- REST id fence kind cause summary stack failure payload delay done total
-- FLAGS allow-oom
-- GIVES       {answers: "" or "!CODE sentence", news: {pool, due, version}}
-- FAILS       STALE_FENCE NOT_FOUND
--
-- kind       cause            what the rest means
-- succeed    -                payload: the result
-- skip       -                summary: why
-- continue   -                payload: the cursor; delay, done, total, summary: a message
-- fail       the cause        summary, stack, failure: its kind, delay: before the next attempt; payload "permanent": not again
-- lose       killed           summary
-- give_back  released         payload "unstarted": the handler never ran, so it was no attempt; "unknown": nor does the worker know
--                             the task, so it goes to those who do; delay: not before
-- stopped    -                the job was taken from its holder, who has stopped: its concurrency key is free, nothing else changes

local ENDS = {succeed = 'succeeded', skip = 'skipped', fail = 'failed', lose = 'failed', give_back = 'canceled'}

-- Is this the outcome we already have? Then its sender lost our answer. The cause counts too: an attempt that the reaper
-- ended as lost has not ended as its holder says now. A chunk that paused with its instance is known by its cursor.
local function sent_again(job, it)
  for number = tonumber(job.attempts), 1, -1 do
    local attempt = read_attempt(job, number)
    if attempt.fence == it.fence then
      if it.kind == 'continue' then
        if job.state == 'paused' then return attempt.cause == 'paused' and get_blob(job, 'cursor') == it.payload end
        return job.state == 'pending' and attempt.status == 'running'
      end
      return attempt.status == ENDS[it.kind] and (it.cause == '' or attempt.cause == it.cause)
    end
  end
  return false
end

local outcome = {}

function outcome.succeed(job, it)
  end_attempt(job, 'succeeded')
  if it.payload ~= '' then put_blob(job, 'result', it.payload) end
  if job.background then progress.finish(job) end
  move('succeed', job)
end

function outcome.skip(job, it)
  end_attempt(job, 'skipped')
  if it.summary ~= '' then put_blob(job, 'reason', it.summary) end
  move('succeed', job)
end

outcome['continue'] = function(job, it)
  local attempt = last_attempt(job)
  attempt.chunks = attempt.chunks + 1
  write_attempt(job, attempt)
  set(job, 'chunk', text(job.chunk + 1))
  set(job, 'failures', '0')
  put_blob(job, 'cursor', it.payload)
  if job.background then
    progress.commit(job, it.done, it.total)
    progress.show(job, 'message', it.summary)
    progress.rest(job, it.delay)
  end
  wait_until(job, 'continue', now + it.delay)
end

local LEVELS = 20 -- so far up is looked

-- The tasks that led to a job which has crossed a budget. Its worker knows them only where a budget of depth or tree is in force
-- above it; to look them up here costs nothing until a budget is crossed.
local function with_call_path(job, summary)
  local said, path = string.match(summary, '^(.*\ncall path: )(.*)$')
  if not said then return summary end
  local names, id = {string.match(path, '[^ ]*$')}, job.parent
  for _ = 1, LEVELS do
    local above = id and peek(id, {'task', 'parent'})
    if not above then break end
    table.insert(names, 1, above.task)
    id = above.parent
  end
  local _, told = string.gsub(path, ' > ', '')
  if #names < told + 1 then return summary end
  return said .. (id and '... > ' or '') .. table.concat(names, ' > ')
end

function outcome.fail(job, it)
  local summary = it.cause == 'limit' and with_call_path(job, it.summary) or it.summary
  fail(job, it.cause, tonumber(it.delay), it.payload == 'permanent', summary, it.stack, it.failure)
end

function outcome.lose(job, it)
  lose(job, it.cause, it.summary)
end

function outcome.give_back(job, it)
  if it.payload == 'unknown' then gates.report_unknown(job.task) end
  give_back(job, it.payload == '', tonumber(it.delay))
end

local answers = {}
local succeeded = 0
for at = FIRST, #ARGV, 11 do
  local it = {}
  it.id, it.fence, it.kind, it.cause, it.summary, it.stack, it.failure, it.payload, it.delay, it.done, it.total =
    unpack(ARGV, at, at + 10)
  local job = load(it.id)
  local refused = it.kind ~= 'stopped' and not_held(job, it.id, it.fence)
  if it.kind == 'stopped' then
    keyed.stop_lingering(job, it.fence)
    answers[#answers + 1] = ''
  elseif not refused then
    keyed.vacate(job)
    outcome[it.kind](job, it)
    conclude(job)
    if job.state == 'succeeded' then succeeded = succeeded + 1 end
    answers[#answers + 1] = ''
  else
    answers[#answers + 1] = job and sent_again(job, it) and '' or '!' .. refused
  end
end
if succeeded > 0 then retire('succeeded', 2 * succeeded) end -- two for each that comes, so the list keeps its bound
return {answers, news()}
