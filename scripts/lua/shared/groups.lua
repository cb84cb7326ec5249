-- Jobs that belong together are found by what they share: each such value has a list of its jobs, in the order they were made.

local GROUPED = {'instance', 'node', 'trace', 'record'}

local function each_group(job, visit)
  for at = 1, #GROUPED do
    local kind = GROUPED[at]
    if job[kind] then visit(K.group(kind, get_blob(job, kind))) end
  end
  if job.labels then
    for label in string.gmatch(get_blob(job, 'labels'), '[^\n]+') do visit(K.group('label', label)) end
  end
  if job.root then visit(K.group('trace', job.id)) end
end

local function join_groups(job)
  each_group(job, function(key) add(key, job.created, job.id) end)
end

local function leave_groups(job)
  each_group(job, function(key) drop(key, job.id) end)
end

-- A trace is named by the job it began with, which needs no list as long as it is alone: the first job that joins it, at the
-- latest, puts that one among them.
local function mark_root(job)
  local id = job.trace
  if not id or #id ~= #job.id then return end
  local created, trace, root = unpack(redis.call('HMGET', K.row(id), SHORT.created, SHORT.trace, SHORT.root))
  if not created or trace or root then return end
  redis.call('HSET', K.row(id), SHORT.root, '1')
  add(K.group('trace', id), created, id)
end

-- The list of the jobs that share a value: what they died of has one of its own, by when they did.
local function shared_list(kind, value)
  return kind == 'fingerprint' and K.cluster(value) or K.group(kind, value)
end
