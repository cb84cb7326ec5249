-- Make the jobs that tell of deaths. A group that is told already, by another or by this call sent before, is passed over.
--
-- KEYS home   hash  the tenant's meta
-- ARGV pool   text  whose workers tell
-- ARGV pause  ms    how long nothing more is told of a group
-- REST task reason since id args    since: as `notices` gave it
-- GIVES       {next visit or "", version, ids of the jobs made, news: {pool, due, version}}

local made = {}
for at = FIRST, #ARGV, 5 do
  local task, reason, since, id, args = unpack(ARGV, at, at + 4)
  local group = task .. '|' .. reason
  local waits, quiet = to_tell(redis.call('HGET', K.notices(), group))
  if waits and text(waits) == since and notice_due(waits, quiet) <= now then
    announce(create(id, TELLER, pool, now, {'args', args}, '0'))
    redis.call('HSET', K.notices(), group, '- ' .. text(now + pause))
    made[#made + 1] = id
  end
end

-- What has been told for so long is forgotten.
local flat = redis.call('HGETALL', K.notices())
for at = 1, #flat, 2 do
  local since, until_then = to_tell(flat[at + 1])
  if not since and until_then <= now then redis.call('HDEL', K.notices(), flat[at]) end
end

local told, due = news(), next_notice()
return {due and text(due) or '', readvertise(NOTICES, due), made, told}
