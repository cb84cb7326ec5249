-- Why a job cannot be claimed now: nil, or a verdict of the closed list that `why` shows and what would release it.
-- The claim asks the same function, so the two can never disagree.

local BY_INSTANCE = {paused = 'instance_suspended', canceled = 'instance_ended'}

local function blocker(job)
  if job.state ~= 'pending' then return 'state_' .. job.state end
  local held = BY_INSTANCE[admitted(job)]
  if held then return held end
  if owes_its_start(job) and tonumber(job.start_by) <= now then return 'expired' end
  if tonumber(job.run_at or job.created) > now then return 'not_due' end
  return nil
end

-- Nil when the job is running under this very fence, else the refusal its stale holder gets.
local function not_held(job, id, fence)
  if not job then return 'NOT_FOUND job ' .. id .. ' is not in the ledger' end
  if job.state == 'running' and job.fence == fence then return nil end
  return 'STALE_FENCE job ' .. id .. ' is ' .. job.state .. ' under fence ' .. (job.fence or 'none')
    .. ', you hold ' .. fence
end
