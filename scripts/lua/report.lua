-- Progress of a running job, by its holder only. With a cursor it is a checkpoint: committed work. Of any job, that and the
-- notes of the attempt are kept; the rest only of background tasks.
--
-- KEYS home      hash  the tenant's meta
-- ARGV id        text  which job
-- ARGV fence     text  under which fence
-- ARGV cursor    text  packed; empty: no checkpoint
-- ARGV done      text  committed so far; empty: unchanged (with a cursor only)
-- ARGV total     text  empty: unchanged
-- ARGV doing     text  reached inside the chunk, not committed; empty: unchanged
-- ARGV message   text  empty: unchanged
-- ARGV request   text  what the attempt asked of others; empty: unchanged
-- ARGV response  text  what it was answered; empty: unchanged
-- ARGV stage     text  what it is at; empty: unchanged
-- ARGV warnings  int   how many more warnings
-- ARGV skipped   int   how many log lines before these are lost already
-- ARGV word      text  numbers what is said under this fence, so that lines and warnings count once however often it is sent;
--                      empty: they count
-- ARGV steps     int   how many more steps of work
-- ARGV root      text  the job at the top of the call tree whose budget counts them; empty: they are not counted
-- REST line            log lines, oldest first
-- FLAGS allow-oom
-- GIVES         {revision, how many steps its call tree has counted or ""}
-- FAILS         STALE_FENCE NOT_FOUND

-- Whether a report was written before and its answer lost: then its lines and warnings are there.
local function heard_before(job, word)
  if word == '' then return false end
  local fence, last = string.match(redis.call('HGET', K.progress(job.id), 'word') or '', '^(%d+) (%d+)$')
  if fence == job.fence and tonumber(last) >= tonumber(word) then return true end
  redis.call('HSET', K.progress(job.id), 'word', job.fence .. ' ' .. word)
  return false
end

-- A step is counted once, at the top of the tree. Where that row has gone there is nothing left to bound.
local function charge(job)
  local last = string.match(job.charged or '', '^' .. job.fence .. ' (%d+)$')
  local heard = word ~= '' and last and tonumber(last) >= tonumber(word)
  if steps > 0 and not heard then
    if word ~= '' then set(job, 'charged', job.fence .. ' ' .. word) end
    if root == job.id then
      set(job, 'spent', text((job.spent or 0) + steps))
    elseif redis.call('EXISTS', K.row(root)) == 1 then
      redis.call('HINCRBY', K.row(root), SHORT.spent, steps)
    end
  end
  if root == job.id then return job.spent or '' end
  return redis.call('HGET', K.row(root), SHORT.spent) or ''
end

local job = load(id)
local refused = not_held(job, id, fence)
if refused then return redis.error_reply(refused) end
set(job, 'revision', text(job.revision + 1))
if cursor ~= '' then put_blob(job, 'cursor', cursor) end
say_with_attempt(job, 'q', request)
say_with_attempt(job, 'p', response)
if job.background then
  if cursor ~= '' then progress.commit(job, done, total) else progress.show(job, 'total', total) end
  progress.show(job, 'doing', doing)
  progress.show(job, 'message', message)
  progress.show(job, 'stage', stage)
  if not heard_before(job, word) then
    if warnings > 0 then redis.call('HINCRBY', K.progress(job.id), 'warnings', warnings) end
    progress.log(job, {unpack(ARGV, FIRST)}, skipped)
  end
end
local spent = root ~= '' and charge(job) or ''
save(job)
announce(job)
return {job.revision, spent}
