-- Give a pending job another due time, another priority, or both. What it has already changes nothing.
--
-- KEYS home      hash  the tenant's meta
-- ARGV id        text  which job
-- ARGV revision  text  the revision that was seen when this was decided; empty: whichever it is
-- ARGV request   text  digest of what is asked for and of the name of the call: the same again is answered as it was
-- ARGV when      text  due from when on: "+N" for N ms from now, or epoch ms; empty: as it is
-- ARGV priority  text  0 to 9; empty: as it is
-- ARGV reason    text  why
-- ARGV by        text  who
-- FLAGS          allow-oom
-- GIVES          {"1", or "0" if nothing had to change, news: {pool, due, version}}
-- FAILS          NOT_FOUND STALE_PLAN WRONG_STATE BAD_INPUT

local job = load(id)
if not job then return refuse('NOT_FOUND', 'job ' .. id .. ' is not in the ledger') end
if string.match(job.asked or '', '^%d+ (.+)$') == request then return {'1', {}} end
if revision ~= '' and revision ~= job.revision then
  return refuse('STALE_PLAN', 'reschedule of job ' .. id .. ' refused: it is at revision ' .. job.revision .. ', not ' .. revision)
end
local refused = may('reschedule', job)
if refused then return refuse('WRONG_STATE', refused) end

local due = tonumber(job.run_at or job.created)
local run_at = when == '' and due or instant(when)
if run_at <= now and due <= now then run_at = due end -- it keeps its place among those that are due
if run_at >= BAND or (owes_its_start(job) and run_at >= tonumber(job.start_by)) then
  return refuse('BAD_INPUT', 'the due time ' .. text(run_at) .. ' of job ' .. id .. ' is too far ahead'
    .. (job.start_by and ': its latest start is ' .. job.start_by or ''))
end
if priority == '' then priority = job.priority end
if run_at == due and priority == job.priority then return {'0', {}} end

set(job, 'asked', text(job.revision + 1) .. ' ' .. request)
set(job, 'priority', priority)
wait_until(job, 'reschedule', run_at)
note(job, 'reschedule', by, reason)
conclude(job)
return {'1', news()}
