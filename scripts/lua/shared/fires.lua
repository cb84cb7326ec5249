-- Fire records: one list for each trigger and UTC month, each record
-- "instant outcome reason job at scheduler until count", its empty parts written "-".

local function record_fire(job_key, trigger, month, parts)
  for at, part in ipairs(parts) do
    if part == '' then parts[at] = '-' end
  end
  redis.call('RPUSH', K.fires(month, trigger, job_key), table.concat(parts, ' '))
end

-- When the tenant wants to be visited for its triggers: empty when it has none.
local function earliest_fire()
  local first = redis.call('ZRANGE', K.triggers(), 0, 0, 'WITHSCORES')[2]
  return first and text(first) or ''
end

-- What a tenant remembers of the schedules it has deleted: the token of the last deletion, the highest revision and the latest
-- instant of them all. A name that is stored anew goes on from there, so no plan and no record of the old one fits the new.
local function last_deletion()
  local noted = redis.call('HGET', K.meta(), 'deletion') or ''
  local token, revision, instant = string.match(noted, '^(%S+) (%d+) (%d+)$')
  return token, tonumber(revision or 0), tonumber(instant or 0)
end

local function note_deletion(token, revision, instant)
  redis.call('HSET', K.meta(), 'deletion', token .. ' ' .. text(revision) .. ' ' .. text(instant))
end
