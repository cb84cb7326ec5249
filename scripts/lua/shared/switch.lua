-- The tenant's switch: while scheduling is disabled nothing of the tenant fires and no next fire time moves. Missing or empty
-- settings mean that it runs; what cannot be understood means that it does not.

local LAYOUT = '1'
local OBSERVED_TO_THE_END = 9007199254740991

-- {disabled, resumed: the instant from which on it runs again, or 0; until: when it ends by itself, or nil; follow: where the
-- triggers are that are not observed yet, or nil if all are; since}, or nil and why the settings cannot be understood.
local function gate()
  local layout, state, since, until_, resumed, follow =
    unpack(redis.call('HMGET', K.scheduling(), 'layout', 'state', 'since', 'until', 'resumed', 'follow'))
  if not state then return {disabled = false, resumed = 0} end
  local limit = math.huge
  if until_ and until_ ~= '' then limit = tonumber(until_) end
  if layout ~= LAYOUT or (state ~= 'disabled' and state ~= 'enabled') or not tonumber(since) or not limit
    or (state == 'enabled' and not tonumber(resumed)) then
    return nil, 'the scheduling settings of tenant ' .. tenant .. ' cannot be understood'
  end
  if state == 'enabled' then return {disabled = false, resumed = tonumber(resumed)} end
  if limit <= now then return {disabled = false, resumed = limit} end
  return {disabled = true, resumed = 0, until_ = limit < math.huge and limit or nil, follow = follow, since = tonumber(since)}
end

-- When the tenant wants to be visited for its triggers: empty when it does not. While it is disabled, that is when a planned
-- instant is next to be observed, or at once if some triggers are not observed yet. `it` is the gate, if that is known.
local function earliest_fire(it)
  it = it or gate()
  if not it then return '' end
  if it.follow then return text(math.min(now, it.since)) end
  local key = it.disabled and K.observed() or K.triggers()
  local soonest = math.min(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or math.huge, it.until_ or math.huge)
  return soonest < OBSERVED_TO_THE_END and text(soonest) or ''
end
