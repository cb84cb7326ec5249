-- Work off the next slice of a batch: do its verb to each job that is still as it was seen, and note why each other one is skipped.
--
-- KEYS home  hash  the tenant's meta
-- ARGV id    text  which batch
-- ARGV from  text  how many of its jobs are done, as the caller knows; if it is another number nothing is done
-- ARGV most  int   how many jobs a slice has
-- FLAGS      allow-oom
-- GIVES      {its state, how many of its jobs are done, news: {pool, due, version}}
-- FAILS      NOT_FOUND

local state, verb, deed, done, jobs, accepted, rate, following, by, reason = unpack(redis.call('HMGET', K.batch(id),
  'state', 'verb', 'deed', 'done', 'jobs', 'accepted', 'rate', 'next', 'by', 'reason'))
if not state then return refuse('NOT_FOUND', 'batch ' .. id .. ' is not on record') end
if state ~= 'running' or done ~= from then return {state, done, {}} end

local act = {}

-- Their due times are spread; those of the slice before count, however long ago that was.
function act.retry(job)
  local code = not_retriable(job, false)
  if code then return code end
  local due_us = math.max(now_us, tonumber(following))
  following = due_us + math.floor(1000000 / rate)
  begin_round(job, deed, math.floor(due_us / 1000), by, reason)
end

function act.skip(job)
  if may('skip', job) then return 'WRONG_STATE' end
  stop(job, deed, by, reason)
end

local function refused(job_id, generation)
  local job = load(job_id)
  if not job then return 'NOT_FOUND' end
  if job.generation ~= generation then return 'STALE_PLAN' end
  return act[verb](job)
end

local slice = redis.call('LRANGE', K.batch_jobs(id), done, done + most - 1)
for _, entry in ipairs(slice) do
  local job_id, generation = string.match(entry, '^(%S+) (%S+)$')
  local code = refused(job_id, generation)
  if code then skip_in_batch(id, job_id, code) else accepted = accepted + 1 end
end
done = text(done + #slice)
redis.call('HSET', K.batch(id), 'done', done, 'accepted', text(accepted), 'next', text(following))
if tonumber(done) < tonumber(jobs) then
  redis.call('ZADD', K.batch_work(), text(now + DRIVE_MS), id)
else
  state = 'done'
  redis.call('HSET', K.batch(id), 'state', state, 'finished', text(now))
  redis.call('ZREM', K.batch_work(), id)
end
return {state, done, news()}
