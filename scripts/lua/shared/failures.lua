-- A dead or failed job as those see it who look for what went wrong: short, for there may be many.

local SHOWN = {'task', 'state', 'generation', 'finished', 'dead_reason', 'fingerprint', 'instance', 'trace', 'attempts'}
local ERROR_BYTES = 600 -- so much of an error is shown

-- The values of SHOWN, its newest error, and, if it is asked, the code of why it could not be retried. {} when it is gone.
local function failed_row(id, judged)
  local job, row = peek(id, SHOWN), {id}
  if not job then return {} end
  for at, name in ipairs(SHOWN) do row[at + 1] = IS_BLOB[name] and get_blob(job, name) or job[name] or '' end
  row[#row + 1] = string.sub(redis.call('HGET', K.errors(id), job.attempts) or '', 1, ERROR_BYTES)
  row[#row + 1] = judged and not_retriable(load(id), false) or ''
  return row
end
