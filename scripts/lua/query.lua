-- A page of jobs: those of some lists that pass every test, in one order, from where the page before ended. A bounded number of
-- jobs is looked at, so a page may be short, or empty, and still have a next one.
--
-- KEYS home   hash  the tenant's meta
-- ARGV order  text  created, stopped: newest first by that; due: earliest first; given: as the lists have them
-- ARGV score  text  where the page before ended, in the order; empty: from the beginning
-- ARGV id     text  the job there
-- ARGV limit  int   how many at most
-- ARGV most   int   how many are looked at
-- ARGV form   text  how each is given: empty: as `shown` does; failed, judged: as `failed_row` does, judged or not
-- REST what name value    the lists: (journal, task, position), (succeeded, "", position), (stopped, state, ""),
--                   (group, kind, value), (pending, "", ""), (these, "", ids), (key, "", digest of an idempotency key). And the
--                   tests: (is, field, value), of one field any of several; (isnt, field, value); (label, "", name=value);
--                   (since, "", ms), (before, "", ms): when it was made; (ended_since, "", ms), (ended_before, "", ms): when it
--                   ended; (error, "", words): in its newest error; (text, digest, words): there, or its idempotency key
-- FLAGS no-writes
-- GIVES       {how many were looked at, where the page ended: score, id, "1" if there may be more, for each journal or list of
--             succeeded jobs in turn the position to go on at or "", now, each job in its form}

local LAST = 2 ^ 53 -- a position that no list reaches

local lists, tests, allowed = {}, {}, {}
local fields = {'created'}
local since, before, ended_since

local function field_at(name)
  for at, known in ipairs(fields) do
    if known == name then return at end
  end
  fields[#fields + 1] = name
  return #fields
end

local function value_at(at, job)
  local value = job.values[at] or DEFAULTS[fields[at]]
  if value == '' and IS_BLOB[fields[at]] then return get_blob({id = job.id, [fields[at]] = ''}, fields[at]) end
  return value
end

local reads = {}

function reads.is(name, value)
  if not allowed[name] then
    local at, any = field_at(name), {}
    allowed[name] = any
    tests[#tests + 1] = function(job) return any[value_at(at, job)] end
  end
  allowed[name][value] = true
end

function reads.isnt(name, value)
  local at = field_at(name)
  tests[#tests + 1] = function(job) return value_at(at, job) ~= value end
end

function reads.label(_, label)
  local at = field_at('labels')
  tests[#tests + 1] = function(job)
    return string.find('\n' .. (value_at(at, job) or '') .. '\n', '\n' .. label .. '\n', 1, true)
  end
end

function reads.since(_, value) since = tonumber(value) end

function reads.before(_, value) before = tonumber(value) end

function reads.text(digest, words)
  local attempts, unique = field_at('attempts'), field_at('unique')
  local holder = redis.call('HGET', K.unique(), digest) -- stands before all others
  tests[#tests + 1] = function(job)
    if job.id == holder then return false end
    if value_at(unique, job) == digest then return true end
    local summary = redis.call('HGET', K.errors(job.id), value_at(attempts, job))
    return summary and string.find(string.lower(summary), words, 1, true)
  end
end

function reads.error(_, words)
  local attempts = field_at('attempts')
  tests[#tests + 1] = function(job)
    local summary = redis.call('HGET', K.errors(job.id), value_at(attempts, job))
    return summary and string.find(string.lower(summary), words, 1, true)
  end
end

function reads.ended_since(_, value)
  local at = field_at('finished')
  ended_since = tonumber(value)
  tests[#tests + 1] = function(job) return job.values[at] and tonumber(job.values[at]) >= ended_since end
end

function reads.ended_before(_, value)
  local at = field_at('finished')
  tests[#tests + 1] = function(job) return job.values[at] and tonumber(job.values[at]) < tonumber(value) end
end

local descending = order ~= 'due'

local function entry_walk(key, down)
  local rank = score == '' and 0 or passed(key, tonumber(score), id, down)
  local from = order == 'stopped' and math.max(since or 0, ended_since or 0) or since
  return walk_zset(key, down, rank, from)
end

local opens = {}

local function by_position(walk, from, by_created)
  from = from == '' and LAST or tonumber(from)
  return {{list = true, from = from, by_created = by_created, next = walk(from)}}
end

function opens.journal(task, from)
  return by_position(function(at) return walk_journal(task, at) end, from, true)
end

function opens.succeeded(_, from) return by_position(walk_succeeded, from) end

function opens.stopped(state) return {{next = entry_walk(K.stopped(state), true)}} end

function opens.group(kind, value) return {{next = entry_walk(shared_list(kind, value), true)}} end

function opens.pending()
  local walks = {}
  for _, place in ipairs(pending_places()) do
    for _, walk in ipairs(walk_bands(place.key, tonumber(score == '' and -1 or score), id)) do walks[#walks + 1] = {next = walk} end
  end
  return walks
end

function opens.these(_, ids) return {{next = string.gmatch(ids, '%S+')}} end

function opens.key(_, digest)
  local holder = redis.call('HGET', K.unique(), digest)
  return opens.these('', holder or '')
end

for at = FIRST, #ARGV, 3 do
  local what, name, value = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if reads[what] then reads[what](name, value) end
end
local gathers = order == 'due' -- jobs that stand in another order are gathered, and sorted then
local run_at
for at = FIRST, #ARGV, 3 do
  local what, name, value = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if opens[what] then
    gathers = gathers and what ~= 'pending'
    for _, list in ipairs(opens[what](name, value)) do lists[#lists + 1] = list end
  end
end

if gathers then run_at = field_at('run_at') end
local short = {}
for at, name in ipairs(fields) do short[at] = SHORT[name] end

local looked = 0
most = math.max(most, 2 * #lists)

-- The list's next job, if it has one; it is not looked at when that is too much for one call.
local function fill(list)
  while not list.head and not list.over and looked < most do
    local found, stands = list.next()
    if not found then
      list.over = true
      return
    end
    looked = looked + 1
    list.at = stands
    local job = {id = found, stands = stands, values = redis.call('HMGET', K.row(found), unpack(short))}
    local created = tonumber(job.values[1])
    job.key = list.by_created and created or stands or 0
    if list.by_created and created and since and created < since then
      list.over = true
    elseif created or not list.list then
      list.head = job
    end
  end
end

-- The list whose next job comes first; nil at the end, and when that is not known without looking at more.
local function first()
  local best = #lists == 1 and lists[1]
  if best then
    fill(best)
    return best.head and best
  end
  for _, list in ipairs(lists) do
    fill(list)
    if list.head then
      local one, other = list.head, best and best.head
      if not other or (one.key == other.key and one.id ~= other.id and (one.id > other.id) == descending)
        or (one.key ~= other.key and (one.key > other.key) == descending) then best = list end
    elseif not list.over then
      return nil
    end
  end
  return best
end

local function passes(job)
  local created = tonumber(job.values[1])
  if not created or (since and created < since) or (before and created >= before) then return false end
  for _, test in ipairs(tests) do
    if not test(job) then return false end
  end
  return true
end

local ids, ended_at = {}, {score, id}

local function gather()
  local jobs, from = {}, tonumber(score == '' and -1 or score)
  local list = first()
  while list do
    local job = list.head
    job.due = tonumber(job.values[run_at] or job.values[1])
    if passes(job) and (job.due > from or (job.due == from and job.id > id)) then jobs[#jobs + 1] = job end
    list.head = nil
    list = first()
  end
  table.sort(jobs, function(one, other) return one.due < other.due or (one.due == other.due and one.id < other.id) end)
  for at = 1, math.min(limit, #jobs) do
    ids[at], ended_at = jobs[at].id, {text(jobs[at].due), jobs[at].id}
  end
  return #jobs > limit
end

local function merge()
  local list, last = first(), nil
  while list and #ids < limit do
    local job = list.head
    if passes(job) then ids[#ids + 1] = job.id end
    last = job
    list.head = nil
    list = first()
  end
  if last then ended_at = {text(last.key), last.id} end
  for _, one in ipairs(lists) do
    if not one.over then return true end
  end
  return false
end

local more
if gathers then more = gather() else more = merge() end
local goes_on = {}
for _, list in ipairs(lists) do
  if list.list then
    local position = list.head and list.head.stands or list.at and list.at - 1 or list.from
    goes_on[#goes_on + 1] = list.over and '' or text(position)
  end
end
local answer = {text(looked), ended_at[1], ended_at[2], more and '1' or '', goes_on, text(now)}
for _, found in ipairs(ids) do
  answer[#answer + 1] = form == '' and shown(found, 0, 0) or failed_row(found, form == 'judged')
end
return answer
