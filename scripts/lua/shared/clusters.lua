-- Jobs that are dead or failed, gathered by what they died of: a cluster for each fingerprint, with a sample of its failure. One
-- that has lost its last job is gone.

local BURIED = {dead = true, failed = true}

-- What a job is about to die of: the failure that its worker told, as fingerprint, type, frame and template, a line each; else the
-- cause stands for itself.
local function blame(job, cause, failure)
  local fingerprint, sample = string.match(failure or '', '^(%w+)\n(.*)$')
  set(job, 'fingerprint', fingerprint or cause)
  job.sample = sample or ''
end

-- The last sight of a cluster is never before one that was told, also if the server's clock was put back.
local function join_cluster(job)
  local fingerprint = job.fingerprint
  redis.call('ZADD', K.cluster(fingerprint), text(now), job.id)
  redis.call('ZADD', K.clusters(), 'GT', text(now), fingerprint)
  redis.call('HSETNX', K.samples(), fingerprint, text(now) .. '\n' .. job.sample)
end

-- A job that died before there were clusters is in none.
local function leave_cluster(job)
  local fingerprint = job.fingerprint
  if not fingerprint then return end
  unset(job, 'fingerprint')
  redis.call('ZREM', K.cluster(fingerprint), job.id)
  if redis.call('EXISTS', K.cluster(fingerprint)) == 1 then return end
  redis.call('ZREM', K.clusters(), fingerprint)
  redis.call('HDEL', K.samples(), fingerprint)
end
