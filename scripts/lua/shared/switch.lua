-- The tenant's switch: while scheduling is disabled nothing of the tenant fires and no next fire time moves. Missing or empty
-- settings mean that it runs; what cannot be read means that it does not.

local LAYOUT = '1'
local OBSERVED_TO_THE_END = 9007199254740991

local switch = {}

-- Why settings that were read cannot be understood, and whether they are of a newer Tenure; nil if they can.
function switch.odd(layout, state, since, until_, resumed)
  local function shown(value) return value and string.sub(value, 1, 40) or 'missing' end
  if layout ~= LAYOUT then
    local newer = (tonumber(layout) or 0) > tonumber(LAYOUT)
    return 'their layout is ' .. shown(layout) .. ', this Tenure knows ' .. LAYOUT, newer
  end
  if state ~= 'disabled' and state ~= 'enabled' then return 'state is ' .. shown(state) .. ', not disabled or enabled' end
  if not tonumber(since) then return 'since is ' .. shown(since) .. ', not an instant' end
  if until_ and until_ ~= '' and not tonumber(until_) then return 'until is ' .. shown(until_) .. ', not an instant' end
  if state == 'enabled' and not tonumber(resumed) then return 'resumed is ' .. shown(resumed) .. ', not an instant' end
end

-- Nil, what is wrong, what to do about it, and whether the settings are of a newer Tenure, which nobody may overwrite.
function switch.unreadable(why, newer)
  local step = 'tenure tenants enable-scheduling ' .. tenant .. ' (or disable-scheduling) writes them anew'
  if newer then step = 'upgrade Tenure here; or delete ' .. K.scheduling() .. ' if no newer Tenure uses this store' end
  return nil, 'the scheduling settings of tenant ' .. tenant .. ' cannot be read: ' .. why .. '; it gets no new fires', step, newer
end

-- {disabled, resumed: the instant from which on it runs again, or 0; until: when it ends by itself, or nil; follow: where the
-- triggers are that are not observed yet, or nil if all are; since, 0 if nobody has touched it; ended: when it ended by itself,
-- or nil}, or as `switch.unreadable`.
local function gate()
  local found = redis.pcall('HMGET', K.scheduling(), 'layout', 'state', 'since', 'until', 'resumed', 'follow')
  if found.err then return switch.unreadable(K.scheduling() .. ': ' .. found.err) end
  local layout, state, since, until_, resumed, follow = unpack(found)
  if not state and not layout then return {disabled = false, resumed = 0, since = 0} end
  local odd, newer = switch.odd(layout, state, since, until_, resumed)
  if odd then return switch.unreadable(odd, newer) end
  if state == 'enabled' then return {disabled = false, resumed = tonumber(resumed), since = tonumber(since)} end
  local limit = tonumber(until_) or math.huge
  if limit <= now then return {disabled = false, resumed = limit, since = limit, ended = limit} end
  return {disabled = true, resumed = 0, until_ = limit < math.huge and limit or nil, follow = follow, since = tonumber(since)}
end

-- The refusal of what may not be done while scheduling is disabled or its settings cannot be read, or nil. Takes what `gate` gives.
function switch.refusal(it, trouble, step)
  if not it then return refuse('SCHEDULING_DISABLED', trouble, step) end
  if it.disabled then
    return refuse('SCHEDULING_DISABLED', 'scheduling of tenant ' .. tenant .. ' is disabled', 'tenure tenants show ' .. tenant
      .. ' says since when and why; tenure tenants enable-scheduling ' .. tenant .. ' enables it again')
  end
end

-- "1" if scheduling is disabled; what is wrong with the settings and what to do, or ""; when it ended by itself, or ""; flat list
-- of the settings.
function switch.told()
  local it, trouble, step = gate()
  if not it then return {'1', trouble .. '; ' .. step, '', {}} end
  return {it.disabled and '1' or '', '', it.ended and text(it.ended) or '', redis.call('HGETALL', K.scheduling())}
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
