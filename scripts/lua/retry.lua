-- Begin a new round of a job that has failed, is dead or was canceled. Its counts start again, its attempts stay on record. It
-- goes on from its last checkpoint; with other arguments it starts from the beginning, under a new operation key.
--
-- KEYS home        hash  the tenant's meta
-- ARGV id          text  which job
-- ARGV generation  text  the generation that was seen when this was decided; empty: whichever it is
-- ARGV request     text  digest of what is asked for: the same again, in the round that it began, changes nothing
-- ARGV when        text  due from when on: empty for now, "+N" for N ms from now, or epoch ms
-- ARGV edited      text  "1" if it gets other arguments
-- ARGV args        text  these
-- ARGV reason      text  why
-- ARGV force       text  "1": also if nobody knows whether its last call outside has happened
-- FLAGS            allow-oom
-- GIVES            {"1", or "0" if this very request began the round before, news: {pool, due, version}}
-- FAILS            NOT_FOUND STALE_PLAN WRONG_STATE OUTCOME_UNKNOWN KEY_REUSED BAD_INPUT

local job = load(id)
if not job then return refuse('NOT_FOUND', 'job ' .. id .. ' is not in the ledger') end

-- Who names the generation is answered for good; else a job that can be retried again is.
local refused = may('retry', job)
local from = generation ~= '' and generation or refused and text(job.generation - 1) or ''
if job.asked == from .. ' ' .. request then return {'0', {}} end
if generation ~= '' and generation ~= job.generation then
  return refuse('STALE_PLAN', 'retry of job ' .. id .. ' refused: it is in generation ' .. job.generation .. ', not ' .. generation)
end
if refused then return refuse('WRONG_STATE', refused) end
if job.dead_reason == 'outcome_unknown' and force ~= '1' then
  return refuse('OUTCOME_UNKNOWN', 'retry of job ' .. id .. ' refused: a call outside may or may not have happened')
end
local holder = job.unique and redis.call('HGET', K.unique(), job.unique)
if holder and holder ~= id then
  return refuse('KEY_REUSED', 'retry of job ' .. id .. ' refused: its idempotency key belongs to job ' .. holder .. ' now')
end
local run_at = instant(when)
if run_at >= BAND then
  return refuse('BAD_INPUT', 'the due time ' .. when .. ' of job ' .. id .. ' is too far ahead')
end

set(job, 'asked', job.generation .. ' ' .. request)
set(job, 'generation', text(job.generation + 1))
for _, name in ipairs({'failures', 'losses', 'dead_reason', 'finished', 'start_by'}) do unset(job, name) end
if edited == '1' and args ~= get_blob(job, 'args') then
  set(job, 'edit', text(job.edit + 1))
  put_or_drop_blob(job, 'args', args)
  put_or_drop_blob(job, 'cursor', '')
  unset(job, 'chunk')
  if job.background then restart_progress(job) end
end
put_or_drop_blob(job, 'reason', reason)
if job.unique then redis.call('HSET', K.unique(), job.unique, id) end
wait_until(job, 'retry', run_at)
conclude(job)
return {'1', news()}
