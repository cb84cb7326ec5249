-- Jobs that belong together are found by what they share: each such value has a list of its jobs, in the order they were made.

local GROUPED = {'instance'}

local function each_group(job, visit)
  for _, kind in ipairs(GROUPED) do
    if job[kind] then visit(K.group(kind, get_blob(job, kind))) end
  end
end

local function join_groups(job)
  each_group(job, function(key) add(key, job.created, job.id) end)
end

local function leave_groups(job)
  each_group(job, function(key) drop(key, job.id) end)
end
