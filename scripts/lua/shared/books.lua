-- Books: the lists that records of a schedule's month are added to, fire records and the execution log. A record begins with a
-- number that grows: a fire's with its instant, a log entry with the tenant clock. `books` has them by the clock of their last
-- record, so that who carries records off (an archive) finds what is new.

local books = {}

-- A list that has gone by its time is forgotten when another begins.
local function forget_books()
  for _, name in ipairs(redis.call('ZRANGE', K.books(), 0, 1)) do
    if redis.call('EXISTS', base .. name) == 0 then drop(K.books(), name) end
  end
end

function books.written(key, is_new)
  if is_new then forget_books() end
  add(K.books(), tick(), string.sub(key, #base + 1))
end

function books.same_minute(one, other)
  return math.floor(one / MINUTE_MS) == math.floor(other / MINUTE_MS)
end

function books.newest(key)
  local record = redis.pcall('LINDEX', key, -1)
  return type(record) == 'string' and record or ''
end

-- The newest record may come to tell of more; what it begins with stays.
function books.grow(key, record)
  redis.call('LSET', key, -1, record)
  books.written(key, false)
end

-- How many of its records begin with less than `number`.
function books.count_below(key, number)
  local low, high = 0, redis.call('LLEN', key)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if tonumber(string.match(redis.call('LINDEX', key, middle), '^%d+')) < number then low = middle + 1 else high = middle end
  end
  return low
end

-- Its newest records, those that begin with less than `before` (nil: any), newest first: {"1" if there are more, now, since when
-- the tenant's records are whole, in microseconds, or "", record, record, ...}
function books.page_down(key, before, limit)
  local last = before and books.count_below(key, before) or redis.call('LLEN', key)
  local first = math.max(0, last - limit)
  local answer = {first > 0 and '1' or '', text(now), read_meta('born') or ''}
  local records = last > 0 and redis.call('LRANGE', key, first, last - 1) or {}
  for at = #records, 1, -1 do answer[#answer + 1] = records[at] end
  return answer
end
