-- What people have done to a job, the newest entries: each "revision at verb by" and then the reason, a line each. What happens
-- by itself is on record as attempts, so the two together tell of every transition.

local HISTORY = 100

-- To be written after the change, when the job has its new revision.
local function note(job, verb, by, reason)
  redis.call('RPUSH', K.history(job.id), table.concat({job.revision, text(now), verb, by, reason}, '\n'))
  redis.call('LTRIM', K.history(job.id), -HISTORY, -1)
end
