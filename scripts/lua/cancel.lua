-- Cancel or skip a job in any state but succeeded. A running one loses its write right at once; its worker is told.
-- Of a canceled job it changes nothing and is no error: it may be the same call, sent again.
--
-- KEYS home    hash  the tenant's meta
-- ARGV verb    text  cancel | skip
-- ARGV id      text  which job
-- ARGV reason  text  why
-- ARGV by      text  who
-- FLAGS allow-oom
-- GIVES        {state before, news: {pool, due, version}}
-- FAILS        NOT_FOUND WRONG_STATE

local job = load(id)
if not job then return refuse('NOT_FOUND', 'job ' .. id .. ' is not in the ledger') end
if job.state == 'canceled' then return {'canceled', {}} end
local refused = may(verb, job)
if refused then return refuse('WRONG_STATE', refused) end

local before = stop(job, verb, by, reason)
retire('canceled', 2) -- for each that comes, so that they keep their bound
return {before, news()}
