-- What a person has said of an instance: that it is suspended, or ended. The flag is the truth for every operation; the walk over its
-- jobs only brings them after it. Of an instance that goes its way nothing is stored.

-- The state of a job that is to wait for its claim: pending, unless its instance has it paused or canceled.
local function admitted(job)
  if not (job.instance and (job.pausable or job.cleared_on_end)) then return 'pending' end
  local flag = redis.call('HGET', K.instance(get_blob(job, 'instance')), 'state')
  if flag == 'suspended' and job.pausable then return 'paused' end
  if flag == 'ended' and job.cleared_on_end then return 'canceled' end
  return 'pending'
end

-- Who said so, and why.
local function word_on(job)
  local by, reason = unpack(redis.call('HMGET', K.instance(get_blob(job, 'instance')), 'by', 'reason'))
  return by or '', reason or ''
end

-- The same of a job that the end of its instance cancels, which says so.
local function clear_word(job)
  local by, reason = word_on(job)
  reason = 'instance ' .. get_blob(job, 'instance') .. ' has ended' .. (reason ~= '' and ': ' .. reason or '')
  put_blob(job, 'reason', reason)
  return by, reason
end
