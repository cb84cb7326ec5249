-- The kinds of failure whose type and message hold words, of those that were last seen: none when they are too many to be of use.
--
-- KEYS home   hash  the tenant's meta
-- ARGV words  text  in lower case
-- ARGV look   int   how many are looked at
-- ARGV most   int   how many are of use
-- FLAGS no-writes
-- GIVES       fingerprints

local fingerprints = redis.call('ZREVRANGE', K.clusters(), 0, look - 1)
if #fingerprints == 0 then return {} end
local found = {}
for at, sample in ipairs(redis.call('HMGET', K.samples(), unpack(fingerprints))) do
  local kind, template = string.match(sample or '', '^[^\n]*\n([^\n]*)\n[^\n]*\n(.*)$')
  if kind and string.find(string.lower(kind .. ': ' .. template), words, 1, true) then found[#found + 1] = fingerprints[at] end
end
return #found <= most and found or {}
