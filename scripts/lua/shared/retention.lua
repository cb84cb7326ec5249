-- How long jobs stay after they have come to rest, and how many of a state at most. A tenant may have said otherwise.

local FOREVER = '- -'
local KEPT = {succeeded = '86400000 100000', canceled = '86400000 100000'}
local RESTING = {'succeeded', 'canceled', 'failed', 'dead', 'paused'}

-- "ms number", each "-" if there is no such bound.
local function kept(state)
  return redis.call('HGET', K.meta(), 'keep:' .. state) or KEPT[state] or FOREVER
end

-- Where an archiver comes by, what it has not had yet stays: for a week longer and as many again at most, so that one that has
-- stopped costs a bounded amount of memory. Whether that is over is looked at each minute.
local archive = {WEEK = 7 * 86400000, MINUTE = 60000}

-- From which place on it has not had the jobs of a state; huge if none has come by for a week.
function archive.left(state)
  local position, at = string.match(redis.call('HGET', K.meta(), 'archived:' .. state) or '', '^(%d+) (%d+)$')
  return position and now - at < archive.WEEK and tonumber(position) or math.huge
end

-- The oldest jobs of a state, at most so many: their number, and what tells of one its id and when it came to rest.
local function oldest(state, many)
  if state == 'succeeded' then
    local ids = redis.call('LRANGE', K.succeeded(), 0, many - 1)
    return #ids, function(nth) return ids[nth], tonumber(redis.call('HGET', K.row(ids[nth]), SHORT.finished) or 0) end
  end
  local found = redis.call('ZRANGE', K.stopped(state), 0, many - 1, 'WITHSCORES')
  return #found / 2, function(nth) return found[2 * nth - 1], tonumber(found[2 * nth]) end
end

-- The oldest jobs of a state that are over their time or over their number, at most `most`; and when the next one is, or nil.
local function outlived(state, most)
  local after, number = string.match(kept(state), '^(%S+) (%S+)$')
  after, number = tonumber(after), tonumber(number)
  if not after and not number then return {}, nil end
  local size = state == 'succeeded' and redis.call('LLEN', K.succeeded()) or redis.call('ZCARD', K.stopped(state))
  local over = number and size - number or 0
  local ids = {}
  local many, tell = oldest(state, most + 1)
  local left, cut = archive.left(state), state == 'succeeded' and cut_of('+ok')
  for nth = 1, many do
    if nth > over and not after then return ids, nil end
    local id, since = tell(nth)
    local due = nth <= over and now or since + after
    if (cut and cut + nth - 1 or since) >= left and not (number and nth <= over - number) and since + (after or 0) + archive.WEEK > now then
      due = math.max(due, now + archive.MINUTE)
    end
    if due > now or nth > most then return ids, math.max(due, now) end
    ids[nth] = id
  end
  return ids, nil
end

-- When the last of those ended that retention has let go, epoch ms; 0 if none.
local function let_go_until(state)
  return tonumber(redis.call('HGET', K.meta(), 'let_go:' .. state) or 0)
end

-- Let the oldest jobs of a state go, `most` of those whose time or number is over; answers how many, and when the next one goes.
local function retire(state, most)
  local ids, due = outlived(state, most)
  if #ids == 0 then return 0, due end
  tick() -- so that the clock tells of it
  if state == 'dead' and #ids == redis.call('ZCARD', K.stopped('dead')) then queued(NOTICES, math.huge) end
  if state == 'succeeded' then
    redis.call('LTRIM', K.succeeded(), #ids, -1)
    if redis.call('EXISTS', K.succeeded()) == 1 then
      redis.call('HINCRBY', K.meta(), 'cut:+ok', #ids)
    else
      redis.call('HDEL', K.meta(), 'cut:+ok')
    end
  end
  local last = tonumber(redis.call('HGET', K.row(ids[#ids]), SHORT.finished) or 0)
  if last > let_go_until(state) then redis.call('HSET', K.meta(), 'let_go:' .. state, text(last)) end
  forget(ids)
  return #ids, due
end

-- When the first job of any state outlives its time, or nil.
local function next_retired()
  local soonest = math.huge
  for _, state in ipairs(RESTING) do
    local ids, due = outlived(state, 1)
    soonest = math.min(soonest, #ids > 0 and now or due or math.huge)
  end
  return soonest < math.huge and soonest or nil
end

-- A slice for the reaper: jobs of all states, `most` altogether; answers when there is more, or nil.
local function retire_all(most)
  local soonest = math.huge
  for _, state in ipairs(RESTING) do
    local gone, due = retire(state, most)
    most = most - gone
    soonest = math.min(soonest, due or math.huge)
  end
  return soonest < math.huge and soonest or nil
end
