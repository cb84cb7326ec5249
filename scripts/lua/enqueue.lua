-- Make jobs, each once: an id already here is a call sent again, an idempotency key already here gives its job.
--
-- KEYS home    hash  the tenant's meta
-- ITEMS        id task pool when unique digest pairs, then that many pairs of (field, value); `when` is empty for now,
--              "+N" for N ms from now, or epoch ms; `unique` and `digest` are empty without an idempotency key
-- GIVES        {items: {id, created "1" or "0"} or "!CODE sentence", news: {pool, due, version}, a latest start that comes
--              before all that the reaper waits for: {due, version}, else {}}
-- FAILS        KEY_REUSED BAD_INPUT

-- The job that already stands under the key, or nil.
local function holder(unique)
  local id = unique ~= '' and redis.call('HGET', K.unique(), unique)
  return id and load(id)
end

local items, start_by = {}, math.huge
local at = FIRST
while at <= #ARGV do
  local id, task, pool, when, unique, digest, pairs_of = unpack(ARGV, at, at + 6)
  local fields = {unpack(ARGV, at + 7, at + 6 + 2 * pairs_of)}
  at = at + 7 + 2 * pairs_of

  local held, run_at = holder(unique), instant(when)
  if redis.call('EXISTS', K.row(id)) == 1 then
    items[#items + 1] = {id, '1'}
  elseif held and held.digest ~= digest then
    items[#items + 1] = '!KEY_REUSED the idempotency key belongs to job ' .. held.id .. ' (' .. held.task
      .. ', ' .. held.state .. '), which ' .. (held.task == task and 'has other arguments' or 'is of another task than ' .. task)
      .. "; the key is '" .. get_blob(held, 'unique_key') .. "'"
  elseif held then
    items[#items + 1] = {held.id, '0'}
  elseif run_at >= BAND then
    items[#items + 1] = '!BAD_INPUT the due time ' .. when .. ' of job ' .. id .. ' is too far ahead'
  else
    if unique ~= '' then
      fields[#fields + 1], fields[#fields + 2] = 'unique', unique
      fields[#fields + 1], fields[#fields + 2] = 'digest', digest
    end
    local job = create(id, task, pool, run_at, fields, '0')
    announce(job)
    if owes_its_start(job) then start_by = math.min(start_by, job.start_by) end
    items[#items + 1] = {id, '1'}
  end
end

local reap = {}
if start_by < math.huge and start_by < (next_expiry() or math.huge) then reap = {text(start_by), tick()} end
return {items, news(), reap}
