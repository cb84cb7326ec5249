-- The deaths that are to be told of now.
--
-- KEYS home   hash  the tenant's meta
-- ARGV limit  int   how many groups at most
-- FLAGS no-writes
-- GIVES       {task, reason, since} of each group

local flat, found = redis.call('HGETALL', K.notices()), {}
for at = 1, #flat, 2 do
  local since, quiet = to_tell(flat[at + 1])
  if since and notice_due(since, quiet) <= now and #found < limit then
    local task, reason = string.match(flat[at], '^(.*)|(.*)$')
    found[#found + 1] = {task, reason, text(since)}
  end
end
return found
