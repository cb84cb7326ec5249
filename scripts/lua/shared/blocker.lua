-- Why a job cannot be claimed now: nil, or a verdict of the closed list that `why` shows and what would release it.
-- The claim asks the same function, so the two can never disagree.

local BY_INSTANCE = {paused = 'instance_suspended', canceled = 'instance_ended'}

local function held_by(job)
  if not gates.any() then return nil end
  if gates.tenant_held() then return 'held_tenant' end
  if gates.pool_held(job.pool) then return 'held_pool' end
  if gates.task_held(job.task) then return 'held_task' end
end

local function blocker(job)
  if job.state ~= 'pending' then return 'state_' .. job.state end
  local held = BY_INSTANCE[admitted(job)]
  if held then return held end
  if owes_its_start(job) and tonumber(job.start_by) <= now then return 'expired' end
  held = held_by(job)
  if held then return held end
  if tonumber(job.run_at or job.created) > now then return 'not_due' end
  if gates.pace(job.task) <= 0 then return 'rate_limited' end
  local key = keyed.key_of(job)
  if key then
    local share = keyed.share_of(key)
    if keyed.room(share) <= 0 then return 'key_full' end
    if keyed.pace_of(share, key) <= 0 then return 'rate_limited' end
    if not keyed.shows(share, job) then return 'behind_others_of_key' end
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

-- What the verdict is for those who look: that nobody who knows the task has come by yet keeps no worker from the job.
local function verdict_on(job)
  local blocked = blocker(job)
  if blocked then return blocked end
  if gates.nobody_knows(job.task) then return 'task_unknown' end
  return nil
end

-- What a verdict is about.
local facts = {}

-- {limit, holders}
function facts.key_full(job)
  local key = keyed.key_of(job)
  local told = {text(keyed.share_of(key).limit)}
  tell_holders(key, told)
  return told
end

-- {limit, how many stand before it}
function facts.behind_others_of_key(job)
  local key = keyed.key_of(job)
  return {text(keyed.share_of(key).limit), text(redis.call('ZRANK', K.waiters(line_of(job), key), job.id) or 0)}
end

-- {many, period, from when on the next may start, "1" if it is the key's}
function facts.rate_limited(job)
  local limit, of_key = gates.of(job.task)[2], ''
  local left, from = gates.pace(job.task)
  if left > 0 then
    local key = keyed.key_of(job)
    limit, of_key = keyed.share_of(key).rate, '1'
    left, from = keyed.pace_of(keyed.share_of(key), key)
  end
  local many, period = string.match(limit, '^(%d+) (%d+)$')
  return {many, period, text(from), of_key}
end

-- {until, since, words}
local function told_of_hold(hold)
  return {string.match(hold, '^(%d+) (%d+) (.*)$')}
end

function facts.held_tenant() return told_of_hold(gates.tenant_hold()) end

function facts.held_pool(job) return told_of_hold(gates.pool_hold(job.pool)) end

function facts.held_task(job) return told_of_hold(gates.of(job.task)[1]) end

-- {when a worker last said that it does not know the task}
function facts.task_unknown(job) return {(string.match(gates.of(job.task)[4], '^%d+'))} end

local function facts_of(job, blocked)
  return facts[blocked] and facts[blocked](job) or {}
end

-- Nil when the job is running under this very fence, else the refusal its stale holder gets.
local function not_held(job, id, fence)
  if not job then return 'NOT_FOUND job ' .. id .. ' is not in the ledger' end
  if job.state == 'running' and job.fence == fence then return nil end
  return 'STALE_FENCE job ' .. id .. ' is ' .. job.state .. ' under fence ' .. (job.fence or 'none')
    .. ', you hold ' .. fence
end
