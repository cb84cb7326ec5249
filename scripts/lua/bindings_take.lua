-- Take tasks whose business row is behind in hand, to write it: each with a clock that no earlier state of any task has.
--
-- KEYS home   hash  the tenant's meta
-- ARGV only   text  the one task to take if it is due; empty: whichever are
-- ARGV limit  int   how many at most
-- ARGV hold   ms    how long others leave them alone
-- REST binding      what the asker can write; tasks of other bindings are left to others
-- GIVES       {next visit or "", version, now, for each: {clock, tries, what `shown` gives}}

local ELSE_MS = 5000 -- when to look again at what somebody else has to write

local mine = {}
for at = FIRST, #ARGV do mine[ARGV[at]] = true end

local taken = {}
local function take(job)
  local wait = text(now + hold)
  redis.call('ZADD', K.bound(), wait, job.id)
  redis.call('HSET', K.progress(job.id), 'bind_wait', wait)
  taken[#taken + 1] = {tick(), redis.call('HGET', K.progress(job.id), 'bind_tries') or '0', shown(job.id, 0, 0)}
end

-- Those that are due, or the only one that is asked for.
local function due_ids()
  if only == '' then return redis.call('ZRANGEBYSCORE', K.bound(), '-inf', text(now), 'LIMIT', 0, limit) end
  return tonumber(redis.call('ZSCORE', K.bound(), only) or math.huge) <= now and {only} or {}
end

for _, id in ipairs(due_ids()) do
  local job = load(id)
  if not job then
    redis.call('ZREM', K.bound(), id)
  elseif redis.call('HGET', K.progress(id), 'bind_rev') == job.revision then
    bound.rest(job)
  elseif mine[job.binding] then
    take(job)
  else
    redis.call('ZADD', K.bound(), text(now + ELSE_MS), id)
  end
end

local due = bound.due()
return {due and text(due) or '', readvertise(bound.QUEUE, due), text(now), unpack(taken)}
