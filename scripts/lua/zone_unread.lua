-- Note that a scheduler came by for a due trigger and could not read its time zone. The trigger stays where it is, for one that can:
-- whatever is planned of it next takes the note away.
--
-- KEYS home       hash  the tenant's meta
-- ARGV job_key    text  which schedule
-- ARGV trigger    text  which of its triggers
-- ARGV revision   text  the revision that was read
-- ARGV planned    text  the due instant that was read
-- ARGV since      ms    from which planned instant on nobody could plan it
-- ARGV scheduler  text  who came by
-- GIVES           "1" if it is noted by this call, else ""

local key = K.schedule(job_key)
local at_revision, next_fire, paused = unpack(redis.call('HMGET', key, 'revision', 'next:' .. trigger, 'paused'))
if at_revision ~= revision or next_fire ~= planned or paused then return '' end
return redis.call('HSETNX', key, 'unread:' .. trigger, text(since) .. ' ' .. scheduler) == 1 and '1' or ''
