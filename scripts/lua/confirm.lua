-- Record a person's word on whether a job's last call outside has happened, where the ledger cannot know it. If it has not, the job
-- may be retried; if it has, it is not sent again unless somebody forces that.
--
-- KEYS home      hash  the tenant's meta
-- ARGV id        text  which job
-- ARGV happened  text  "1" or "0"
-- ARGV remark    text  how they know
-- ARGV by        text  who
-- FLAGS          allow-oom
-- GIVES          {"1", or "0" if that was on record, news: none}
-- FAILS          NOT_FOUND WRONG_STATE

local job = load(id)
if not job then return refuse('NOT_FOUND', 'job ' .. id .. ' is not in the ledger') end
if job.dead_reason ~= 'outcome_unknown' then
  return refuse('WRONG_STATE', 'confirm of job ' .. id .. ' refused: it is ' .. job.state
    .. (job.dead_reason and ' (' .. job.dead_reason .. ')' or '') .. ', and no outcome of it is unknown')
end
if job.confirmed == happened then return {'0', {}} end

set(job, 'confirmed', happened)
set(job, 'revision', text(job.revision + 1))
local said = happened == '1' and 'happened' or 'not happened'
note(job, 'confirm', by, remark == '' and said or said .. ': ' .. remark)
save(job)
announce(job)
return {'1', {}}
