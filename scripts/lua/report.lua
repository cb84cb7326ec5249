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
-- REST line            log lines, oldest first
-- FLAGS allow-oom
-- GIVES         the revision
-- FAILS         STALE_FENCE NOT_FOUND

local job = load(id)
local refused = not_held(job, id, fence)
if refused then return redis.error_reply(refused) end
set(job, 'revision', text(job.revision + 1))
if cursor ~= '' then put_blob(job, 'cursor', cursor) end
say_with_attempt(job, 'q', request)
say_with_attempt(job, 'p', response)
if job.background then
  if cursor ~= '' then commit_progress(job, done, total) else show_progress(job, 'total', total) end
  show_progress(job, 'doing', doing)
  show_progress(job, 'message', message)
  for at = FIRST, #ARGV do write_line(job, ARGV[at]) end
end
save(job)
announce(job)
return job.revision
