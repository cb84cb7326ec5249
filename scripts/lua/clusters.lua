-- The clusters of dead and failed jobs, the last seen first, each with its newest members; or one of them.
--
-- KEYS home         hash  the tenant's meta
-- ARGV fingerprint  text  which one; empty: all
-- ARGV score        text  where the page before ended: when that one was last seen; empty: from the beginning
-- ARGV name         text  and which it was
-- ARGV limit        int   how many clusters at most
-- ARGV members      int   how many jobs of each at most
-- FLAGS             no-writes
-- GIVES             for each: {fingerprint, how many jobs, when it was last seen, its sample: when it was first seen, type, frame,
--                   template, a line each, its newest jobs as `failed_row` gives them}

local function cluster(print, last)
  local key, jobs = K.cluster(print), {}
  for _, id in ipairs(members > 0 and redis.call('ZREVRANGE', key, 0, members - 1) or {}) do
    jobs[#jobs + 1] = failed_row(id, false)
  end
  return {print, text(redis.call('ZCARD', key)), text(last), redis.call('HGET', K.samples(), print) or '', jobs}
end

if fingerprint ~= '' then
  local last = redis.call('ZSCORE', K.clusters(), fingerprint)
  return last and {cluster(fingerprint, last)} or {}
end
local found = {}
local rank = score == '' and 0 or passed(K.clusters(), tonumber(score), name, true)
local next_one = walk_zset(K.clusters(), true, rank)
while #found < limit do
  local print, last = next_one()
  if not print then break end
  found[#found + 1] = cluster(print, last)
end
return found
