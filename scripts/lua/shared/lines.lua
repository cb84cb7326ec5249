-- Lines: the order in which pending jobs are claimed. A pool's line is its queue.

local BAND = 4398046511104 -- 2^42 ms: one priority's stretch of scores in a line, 139 years long
local NEVER = BAND - 1 -- due when something else happens, not at an instant

local function rank(job)
  return text(tonumber(job.priority) * BAND + tonumber(job.run_at or job.created))
end
