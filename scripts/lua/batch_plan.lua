-- Write down what is to be done to many jobs, and do none of it yet. A batch that is there already stays as it is.
--
-- KEYS home        hash  the tenant's meta
-- ARGV id          text  names the batch
-- ARGV verb        text  retry | skip
-- ARGV deed        text  what it is called in the history of the jobs: retry | skip | replay
-- ARGV conditions  text  how the jobs were chosen; empty: by their ids
-- REST job generation code    the generation in which it was seen (empty: the one that it is in), and why it is skipped, if it is
-- GIVES            {"1", or "0" if it was there}

if redis.call('EXISTS', K.batch(id)) == 1 then return {'0'} end
local jobs = {}
for at = FIRST, #ARGV, 3 do
  local job_id, generation, code = unpack(ARGV, at, at + 2)
  if code ~= '' then
    skip_in_batch(id, job_id, code)
  else
    if generation == '' then
      local task, seen = unpack(redis.call('HMGET', K.row(job_id), SHORT.task, SHORT.generation))
      generation = seen or task and DEFAULTS.generation or '0'
    end
    jobs[#jobs + 1] = job_id .. ' ' .. generation
  end
end
send('RPUSH', K.batch_jobs(id), jobs)
redis.call('HSET', K.batch(id), 'verb', verb, 'deed', deed, 'conditions', conditions, 'state', 'planned', 'made', text(now),
  'jobs', text(#jobs), 'done', '0', 'accepted', '0')
redis.call('ZADD', K.batches(), text(now), id)
forget_old_batches()
return {'1'}
