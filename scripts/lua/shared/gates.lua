-- Gates: what keeps a tenant's jobs, a pool's or a task's from being claimed, whatever the jobs are. A hold by a person, a task's
-- rate limit, and that workers have given a task back because they do not know it. Where there are none, that is all that is asked.
--
-- hold KIND NAME  "until since words": until 0 is until somebody releases it; the words are not looked into
-- rate TASK       "many period"; used TASK: the starts that count
-- unknown TASK    "reported known": when a worker last said that it does not know the task, and when one last took a job of it

local gates = {}

local KNOWN_MS = 600000 -- after so long a task that nobody has reported is like any other
local ASK_MS = 30000 -- and so often it is noted at most

function gates.any()
  read_clock()
  return gated
end

local NONE = {}

-- What stands at a field; read once in an operation.
function gates.at(field)
  if not gates.any() then return nil end
  if gate_cache[field] == nil then gate_cache[field] = redis.call('HGET', K.gates(), field) end
  return gate_cache[field]
end

function gates.set(field, value)
  redis.call('HSET', K.gates(), field, value)
  if not gated then redis.call('HSET', K.meta(), 'gates', '1') end
  gated, gate_cache = '1', {}
end

function gates.drop(field)
  if redis.call('HDEL', K.gates(), field) == 1 and redis.call('EXISTS', K.gates()) == 0 then
    redis.call('HDEL', K.meta(), 'gates')
    gated = false
  end
  gate_cache = {}
end

-- Until when a hold holds: NEVER when it does not end by itself; nil when it holds nothing.
function gates.holds_until(hold)
  local till = hold and tonumber(string.match(hold, '^%d+'))
  if not till or (till > 0 and till <= now) then return nil end
  return till == 0 and NEVER or till
end

-- A hold that has ended by itself is forgotten; what was told of its end is past by the clock.
function gates.let_go(field, hold)
  if hold and not gates.holds_until(hold) then
    gates.drop(field)
    tick()
  end
end

function gates.tenant_hold() return gates.at('hold tenant ') end

function gates.pool_hold(pool) return gates.at('hold pool ' .. pool) end

function gates.tenant_held() return gates.holds_until(gates.tenant_hold()) end

function gates.pool_held(pool) return gates.holds_until(gates.pool_hold(pool)) end

-- Until when nothing of a pool is claimed; nil when its jobs may be.
function gates.shut_until(pool)
  local of_tenant, of_pool = gates.tenant_held(), gates.pool_held(pool)
  if not (of_tenant or of_pool) then return nil end
  return math.max(of_tenant or 0, of_pool or 0)
end

-- {hold, rate, used, unknown} of a task; its name has no blank, as all fields have.
function gates.of(task)
  if not gates.any() then return NONE end
  local found = gate_cache[task]
  if not found then
    found = redis.call('HMGET', K.gates(), 'hold task ' .. task, 'rate ' .. task, 'used ' .. task, 'unknown ' .. task)
    gate_cache[task] = found
  end
  return found
end

function gates.task_held(task)
  return gates.holds_until(gates.of(task)[1])
end

-- How many jobs of a task its rate limit lets start now; when none, from when on.
function gates.pace(task)
  local of = gates.of(task)
  if not of[2] then return math.huge, now end
  if not of.left then of.left, of.from = allowance(of[2], of[3]) end
  return of.left, of.from
end

local function is_reported(unknown)
  local reported = unknown and tonumber(string.match(unknown, '^%d+'))
  return reported and reported > now - KNOWN_MS
end

function gates.has_rate(task)
  return gates.of(task)[2]
end

-- Whether jobs of a task wait in a line of their own, so that nobody else waits for them.
function gates.has(task)
  local of = gates.of(task)
  return of[2] or gates.holds_until(of[1]) or is_reported(of[4])
end

-- From when on a task's gate lets jobs through, as far as that is known now.
function gates.opens_at(task)
  local _, from = gates.pace(task)
  return gates.task_held(task) or from
end

-- Whether no worker has taken a job of a task since one said that it does not know it.
function gates.nobody_knows(task)
  local reported, known = string.match(gates.of(task)[4] or '', '^(%d+) (%d+)$')
  return reported and tonumber(reported) > now - KNOWN_MS and tonumber(reported) >= tonumber(known)
end

function gates.report_unknown(task)
  local reported, known = string.match(gates.of(task)[4] or '', '^(%d+) (%d+)$')
  if reported and tonumber(reported) > now - ASK_MS then return end
  gates.set('unknown ' .. task, text(now) .. ' ' .. (known or '0'))
end

-- A job of a task starts: its rate limit counts it, and somebody knows it.
function gates.count_start(task)
  if not gates.any() then return end
  local _, rate, used, unknown = unpack(gates.of(task), 1, 4)
  if rate then gates.set('used ' .. task, (with_start(rate, used))) end
  local reported, known = string.match(unknown or '', '^(%d+) (%d+)$')
  if reported and tonumber(known) <= tonumber(reported) then
    gates.set('unknown ' .. task, reported .. ' ' .. text(math.max(now, reported + 1)))
  end
end

-- The rate limit that code gives a task; "0" is none. The last word counts.
function gates.tell_rate(task, rate)
  if rate == '0' then
    if not gates.any() or not gates.of(task)[2] then return end
    gates.drop('rate ' .. task)
    gates.drop('used ' .. task)
  elseif gates.of(task)[2] ~= rate then
    gates.set('rate ' .. task, rate)
  end
end
