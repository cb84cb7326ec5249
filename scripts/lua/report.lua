-- Progress of a running job, by its holder only. With a cursor it is a checkpoint: committed work, of any job;
-- the rest is kept for background tasks.
--
-- KEYS home     hash  the tenant's meta
-- ARGV id       text  which job
-- ARGV fence    text  under which fence
-- ARGV cursor   text  packed; empty: no checkpoint
-- ARGV done     text  committed so far; empty: unchanged (with a cursor only)
-- ARGV total    text  empty: unchanged
-- ARGV doing    text  reached inside the chunk, not committed; empty: unchanged
-- ARGV message  text  empty: unchanged
-- REST line           log lines, oldest first
-- FLAGS allow-oom
-- GIVES         the revision
-- FAILS         STALE_FENCE NOT_FOUND

local job = load(id)
local refused = not_held(job, id, fence)
if refused then return redis.error_reply(refused) end
set(job, 'revision', text(job.revision + 1))
if cursor ~= '' then put_blob(job, 'cursor', cursor) end
if job.background then
  if cursor ~= '' then commit_progress(job, done, total) else show_progress(job, 'total', total) end
  show_progress(job, 'doing', doing)
  show_progress(job, 'message', message)
  for at = FIRST, #ARGV do write_line(job, ARGV[at]) end
end
save(job)
announce(job)
return job.revision
