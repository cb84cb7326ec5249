-- The tenants that want a visit now, the longest unvisited first; each is put at the end of the turn, not removed.
--
-- KEYS home     hash  the index's home
-- ARGV queue    text  due:POOL, reap or fire
-- ARGV limit    int   how many at most
-- ARGV revisit  ms    until when the others leave it to us; 0: they may come at once
-- FLAGS allow-oom
-- GIVES         {now, the next due instant in ms or "", tenant, tenant, ...}

local key = K.due(queue)
local due = redis.call('ZRANGEBYSCORE', key, '-inf', text(now_us), 'LIMIT', 0, limit)
for at, who in ipairs(due) do
  add(key, text(now_us + revisit * 1000 + at), who)
end
local first = redis.call('ZRANGE', key, #due, #due, 'WITHSCORES')[2]
return {text(now), first and text(math.floor(first / 1000)) or '', unpack(due)}
