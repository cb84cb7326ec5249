-- Why a job cannot be claimed now: nil, or a verdict of the closed list that `why` shows and what would release it.
-- The claim asks the same function, so the two can never disagree.

local BY_INSTANCE = {paused = 'instance_suspended', canceled = 'instance_ended'}

local function blocker(job)
  if job.state ~= 'pending' then return 'state_' .. job.state end
  local held = BY_INSTANCE[admitted(job)]
  if held then return held end
  if owes_its_start(job) and tonumber(job.start_by) <= now then return 'expired' end
  if tonumber(job.run_at or job.created) > now then return 'not_due' end
  local key = key_of(job)
  if key then
    if room(share_of(key)) <= 0 then return 'key_full' end
    if redis.call('ZSCORE', K.hidden(job.pool), job.id) then return 'behind_others_of_key' end
  end
  return nil
end

-- Who holds a key: job, worker, since when, and whether it lingers, one after the other; of many some.
local TOLD_HOLDERS = 16

local function tell_holders(key, facts)
  local found = redis.call('HSCAN', K.holders(key), 0, 'COUNT', TOLD_HOLDERS)[2]
  for at = 1, math.min(#found, 2 * TOLD_HOLDERS), 2 do
    local attempt = attempt_under(load(found[at + 1]), found[at])
    facts[#facts + 1], facts[#facts + 2], facts[#facts + 3], facts[#facts + 4] =
      found[at + 1], attempt.worker, text(attempt.start), attempt.status == 'running' and '' or '1'
  end
end

-- What a verdict is about. key_full: limit, holders; behind_others_of_key: limit, how many are before it.
local function facts_of(job, blocked)
  local facts = {}
  if blocked == 'key_full' or blocked == 'behind_others_of_key' then
    local key = key_of(job)
    facts[1] = text(share_of(key).limit)
    if blocked == 'key_full' then
      tell_holders(key, facts)
    else
      facts[2] = text(redis.call('ZRANK', K.waiters(job.pool, key), job.id) or 0)
    end
  end
  return facts
end

-- Nil when the job is running under this very fence, else the refusal its stale holder gets.
local function not_held(job, id, fence)
  if not job then return 'NOT_FOUND job ' .. id .. ' is not in the ledger' end
  if job.state == 'running' and job.fence == fence then return nil end
  return 'STALE_FENCE job ' .. id .. ' is ' .. job.state .. ' under fence ' .. (job.fence or 'none')
    .. ', you hold ' .. fence
end
