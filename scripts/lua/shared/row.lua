-- A job's row: read under long names, written under short ones, values over 64 bytes in a key of their own.

local ROW = {__index = DEFAULTS}

-- `saved` has room for what a new job has.
local function new_row(id)
  return setmetatable({id = id, packed = {}, saved = {nil, nil, nil, nil, nil, nil, nil, nil}, gone = {}}, ROW)
end

-- nil when there is no such job. Numbers stay text; `saved` gathers changes until `save`.
local function load(id)
  local flat = redis.call('HGETALL', K.row(id))
  if #flat == 0 then return nil end
  local job = new_row(id)
  for at = 1, #flat, 2 do
    local name = LONG[flat[at]]
    if name then job[name] = flat[at + 1] else job.packed[flat[at]] = flat[at + 1] end
  end
  return job
end

-- Only these fields of a row, to look at; nil when there is no such job.
local function peek(id, names)
  local short, job = {}, new_row(id)
  for at, name in ipairs(names) do short[at] = SHORT[name] end
  for at, value in ipairs(redis.call('HMGET', K.row(id), SHORT.task, unpack(short))) do
    if at == 1 and not value then return nil end
    if at > 1 and value then job[names[at - 1]] = value end
  end
  return job
end

local function set(job, name, value)
  job[name] = value
  local saved = job.saved
  saved[#saved + 1], saved[#saved + 2] = SHORT[name], value
end

local function unset(job, name)
  job[name] = nil
  job.gone[#job.gone + 1] = SHORT[name]
end

local function pack_field(job, field, value)
  job.packed[field] = value
  local saved = job.saved
  saved[#saved + 1], saved[#saved + 2] = field, value
end

-- A long value goes to its own key; the row keeps an empty mark, so that one read of the row tells where to look.
local function put_blob(job, name, value)
  if #value > BLOB_LIMIT then
    redis.call('SET', K.blob(SHORT[name], job.id), value)
    set(job, name, '')
  else
    if job[name] == '' then redis.call('DEL', K.blob(SHORT[name], job.id)) end
    set(job, name, value)
  end
end

local function get_blob(job, name)
  local value = job[name]
  if value == '' then return redis.call('GET', K.blob(SHORT[name], job.id)) or '' end
  return value or ''
end

-- A value that is replaced, or goes when there is no other.
local function put_or_drop_blob(job, name, value)
  if value ~= '' then return put_blob(job, name, value) end
  if job[name] == '' then redis.call('DEL', K.blob(SHORT[name], job.id)) end
  if job[name] then unset(job, name) end
end

local function save(job)
  if #job.saved > 0 then
    redis.call('HSET', K.row(job.id), unpack(job.saved))
    job.saved = {}
  end
  if #job.gone > 0 then
    redis.call('HDEL', K.row(job.id), unpack(job.gone))
    job.gone = {}
  end
end
