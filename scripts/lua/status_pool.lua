-- What waits in a pool: how much of it is due, since when, and of which tasks it is, as far as the jobs are looked at.
--
-- KEYS home  hash  the tenant's meta
-- ARGV pool  text  which pool
-- ARGV most  int   how many jobs are looked at; due ones first, then by priority
-- FLAGS no-writes
-- GIVES      {pending jobs, due ones, behind concurrency keys, the earliest due time that is past or "", due jobs looked at, with
--            those behind keys, others looked at, for each task of them: {task, due, not due, earliest and latest due time}}

-- The priorities there are, how many jobs of them are due, and since when the first.
local function count_due(key)
  local floors, due, oldest, from = {}, 0, math.huge, '-inf'
  repeat
    local first = redis.call('ZRANGEBYSCORE', key, from, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if not first[1] then return floors, due, oldest end
    local floor = math.floor(first[2] / BAND) * BAND
    floors[#floors + 1] = floor
    local here = redis.call('ZCOUNT', key, text(floor), text(floor + now))
    if here > 0 then oldest = math.min(oldest, first[2] - floor) end
    due = due + here
    from = text(floor + BAND)
  until false
end

local places, pending, due, behind, oldest = places_of(pool), 0, 0, 0, math.huge
for _, place in ipairs(places) do
  local floors, here, first = count_due(place.key)
  place.floors = floors
  pending = pending + redis.call('ZCARD', place.key)
  if place.behind then
    behind = behind + here -- not among the due ones
  else
    due, oldest = due + here, math.min(oldest, first)
  end
end

local seen, tasks = {0, 0}, {}

-- Look at jobs whose scores are from `low` to `high`; `kind` is 1 for due ones, 2 for the others.
local function look(kind, key, floor, low, high)
  local left = most - seen[1] - seen[2]
  if left <= 0 then return end
  local found = redis.call('ZRANGEBYSCORE', key, low, high, 'WITHSCORES', 'LIMIT', 0, left)
  seen[kind] = seen[kind] + #found / 2
  for at = 1, #found, 2 do
    local task, run_at = redis.call('HGET', K.row(found[at]), SHORT.task), found[at + 1] - floor
    if task then
      local of = tasks[task] or {task, 0, 0, run_at, run_at}
      tasks[task] = of
      of[kind + 1] = of[kind + 1] + 1
      of[4], of[5] = math.min(of[4], run_at), math.max(of[5], run_at)
    end
  end
end

for _, place in ipairs(places) do
  for _, floor in ipairs(place.floors) do look(1, place.key, floor, text(floor), text(floor + now)) end
end
for _, place in ipairs(places) do
  for _, floor in ipairs(place.floors) do look(2, place.key, floor, '(' .. text(floor + now), text(floor + BAND - 1)) end
end
local answer = {pending, due, behind, oldest < math.huge and text(oldest) or '', seen[1], seen[2]}
for _, of in pairs(tasks) do
  answer[#answer + 1] = {of[1], of[2], of[3], text(of[4]), text(of[5])}
end
return answer
