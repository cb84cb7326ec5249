-- Prolong leases, each by its owner only; a lease never passes its job's deadline.
--
-- KEYS home   hash  the tenant's meta
-- ARGV lease  ms    how long from now
-- REST id fence
-- FLAGS allow-oom
-- GIVES       for each: the new expiry, or "!CODE sentence"
-- FAILS       STALE_FENCE NOT_FOUND

local answers = {}
for at = FIRST, #ARGV, 2 do
  local id, fence = ARGV[at], ARGV[at + 1]
  local job = load(id)
  local refused = not_held(job, id, fence)
  if refused then
    answers[#answers + 1] = '!' .. refused
  else
    local lease_until = text(math.min(now + lease, job.deadline))
    add(K.running(), lease_until, id)
    answers[#answers + 1] = lease_until
  end
end
return answers
