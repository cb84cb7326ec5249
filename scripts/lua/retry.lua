-- Begin a new round of a job that has failed, is dead or was canceled. Its counts start again, its attempts stay on record. It
-- goes on from its last checkpoint; with other arguments it starts from the beginning, under a new operation key.
--
-- KEYS home        hash  the tenant's meta
-- ARGV id          text  which job
-- ARGV generation  text  the generation that was seen when this was decided; empty: whichever it is
-- ARGV request     text  digest of what is asked for and of the name of the call: the same again is answered as it was
-- ARGV when        text  due from when on: empty for now, "+N" for N ms from now, or epoch ms
-- ARGV edited      text  "1" if it gets other arguments
-- ARGV args        text  these
-- ARGV from_start  text  "1": it begins from the beginning, not at its last checkpoint
-- ARGV reason      text  why
-- ARGV by          text  who
-- ARGV force       text  "1": also if nobody knows whether its last call outside has happened
-- FLAGS            allow-oom
-- GIVES            {the generation that this call began, now or when it first came, news: {pool, due, version}}
-- FAILS            NOT_FOUND STALE_PLAN WRONG_STATE INSTANCE_ENDED OUTCOME_UNKNOWN OUTCOME_HAPPENED KEY_REUSED BAD_INPUT

local job = load(id)
if not job then return refuse('NOT_FOUND', 'job ' .. id .. ' is not in the ledger') end

local began, asked = string.match(job.asked or '', '^(%d+) (.+)$')
if asked == request then return {began, {}} end
if generation ~= '' and generation ~= job.generation then
  return refuse('STALE_PLAN', 'retry of job ' .. id .. ' refused: it is in generation ' .. job.generation .. ', not ' .. generation)
end
local code, why = not_retriable(job, force == '1')
if code then return refuse(code, why) end
local run_at = instant(when)
if run_at >= BAND then
  return refuse('BAD_INPUT', 'the due time ' .. when .. ' of job ' .. id .. ' is too far ahead')
end

set(job, 'asked', text(job.generation + 1) .. ' ' .. request)
local others = edited == '1' and args ~= get_blob(job, 'args')
if others then
  set(job, 'edit', text(job.edit + 1))
  put_or_drop_blob(job, 'args', args)
end
if others or from_start == '1' then forget_progress(job) end
begin_round(job, 'retry', run_at, by, reason)
return {job.generation, news()}
