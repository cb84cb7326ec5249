-- What happened in each of the last 60 minutes: how long jobs had waited when they were first started, by pool, and the
-- attempts that ended, by task. For the runtime status; nothing else depends on it.
--
-- The fields of a minute's hash: "N|pool" jobs of a pool whose wait was in bucket N; "n|task" attempts that ended, "f|task" those
-- of them that failed, "d|task" how long all of them took, in ms; "m" which minute it is.

-- The bucket of a wait, counted from 0.
local function bucket_of(ms)
  local low, high = 1, #WAIT_BOUNDS
  while low < high do
    local middle = (low + high + 1) / 2
    middle = middle - middle % 1
    if WAIT_BOUNDS[middle] <= ms then low = middle else high = middle - 1 end
  end
  return low - 1
end

-- An attempt began at `start`. `by` is 1, or -1 when it turns out that it was none.
local function began(job, start, by)
  local waited = start - (job.run_at or job.created)
  happened(start, job.pool, waited > 0 and bucket_of(waited) or 0, by)
end

-- An attempt ended at `at`, which is not before its beginning, also when the clock went back meanwhile.
local function ended(job, failed, at, length)
  happened(at, job.task, 'n', 1)
  happened(at, job.task, 'd', length)
  if failed then happened(at, job.task, 'f', 1) end
end
