-- Walks over the lists in which jobs stand. A walk gives the next entry at each call, (id, where it stands), and nil at its end.
-- Where an entry stands does not change while others come and go: in a zset it is the score, ties by id; in a list the position
-- counted from the first entry that ever was.

local STRIDE = 128

-- How many entries of a zset stand before (score, id), or there, in the order of the walk.
local function passed(key, score, id, down)
  local low = redis.call('ZCOUNT', key, down and '(' .. text(score) or '-inf', down and '+inf' or '(' .. text(score))
  local high = low + redis.call('ZCOUNT', key, text(score), text(score))
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = redis.call(down and 'ZREVRANGE' or 'ZRANGE', key, middle, middle)[1]
    if member == id or (member > id) == down then low = middle + 1 else high = middle end
  end
  return low
end

-- From an entry on, as long as the score is at least `from` and less than `to`, where these are given.
local function walk_zset(key, down, rank, from, to)
  local chunk, at = {}, 0
  return function()
    if at == #chunk then
      chunk = redis.call(down and 'ZREVRANGE' or 'ZRANGE', key, rank, rank + STRIDE - 1, 'WITHSCORES')
      rank, at = rank + STRIDE, 0
    end
    local id, score = chunk[at + 1], tonumber(chunk[at + 2])
    if not id or (from and score < from) or (to and score >= to) then return nil end
    at = at + 2
    return id, score
  end
end

-- From a position on, down; `aside` is a zset of what the list's head was freed from, by position.
local function walk_list(key, cut, aside, from)
  local at = math.min(cut + redis.call('LLEN', key) - 1, from)
  local chunk, older = {}, nil
  return function()
    if at >= cut then
      if #chunk == 0 then chunk = redis.call('LRANGE', key, math.max(0, at - cut - STRIDE + 1), at - cut) end
      at = at - 1
      return table.remove(chunk), at + 1
    end
    if not aside then return nil end
    older = older or walk_zset(aside, true, redis.call('ZCOUNT', aside, '(' .. text(at), '+inf'))
    return older()
  end
end

local function cut_of(name)
  return tonumber(redis.call('HGET', K.meta(), 'cut:' .. name) or 0)
end

local function walk_journal(task, from)
  return walk_list(K.journal(task), cut_of(task), K.aside(task), from)
end

local function walk_succeeded(from)
  return walk_list(K.succeeded(), cut_of('+ok'), nil, from)
end

-- Where a pool's pending jobs stand, in zsets by `rank`; those that only a concurrency key holds back are behind.
local function places_of(pool)
  local places = {{pool = pool, key = K.queue(pool)}, {pool = pool, key = K.hidden(pool), behind = true}}
  for task in string.gmatch(own_lines(pool), '%S+') do
    places[#places + 1] = {pool = pool, key = K.queue(own_line(pool, task))}
  end
  return places
end

-- The same of all pools: one with any has told when it is due. (What has a name with "@" is no pool.)
local function pending_places()
  local places = {}
  for _, field in ipairs(redis.call('HKEYS', K.meta())) do
    local pool = string.match(field, '^due:([^@].*)$')
    for _, place in ipairs(pool and places_of(pool) or {}) do places[#places + 1] = place end
  end
  return places
end

-- A walk for each priority of such a zset, by due time from (due, id) on; where an entry stands is its due time.
local function walk_bands(key, due, id)
  local walks, floor = {}, 0
  repeat
    local first = redis.call('ZRANGEBYSCORE', key, text(floor), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    if not first then return walks end
    floor = math.floor(first / BAND) * BAND
    local start = floor
    local entries = walk_zset(key, false, passed(key, floor + due, id, false), nil, floor + BAND)
    walks[#walks + 1] = function()
      local member, score = entries()
      return member, score and score - start
    end
    floor = floor + BAND
  until false
end
