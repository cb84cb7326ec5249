-- A job's row: read under long names, written under short ones, values over 64 bytes in pieces or in a key of their own.

local ROW = {__index = DEFAULTS}

-- `saved` has room for what a new job has.
local function new_row(id)
  return setmetatable({id = id, packed = {}, pieces = {}, saved = {nil, nil, nil, nil, nil, nil, nil, nil}, gone = {}}, ROW)
end

-- nil when there is no such job. Numbers stay text; `saved` gathers changes until `save`.
local function load(id)
  local flat = redis.call('HGETALL', K.row(id))
  if #flat == 0 then return nil end
  local job = new_row(id)
  for at = 1, #flat, 2 do
    local field, value = flat[at], flat[at + 1]
    local name = LONG[field]
    if name then
      job[name] = value
    elseif IS_PIECE[field] then
      job.pieces[field] = value
    else
      job.packed[field] = value
    end
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
  job.pieces = nil
  return job
end

local function save_field(job, field, value)
  local saved = job.saved
  saved[#saved + 1], saved[#saved + 2] = field, value
  if job.gone[field] then job.gone[field] = nil end
end

local function drop_field(job, field)
  job.gone[field] = true
end

local function set(job, name, value)
  job[name] = value
  save_field(job, SHORT[name], value)
end

local function unset(job, name)
  job[name] = nil
  drop_field(job, SHORT[name])
end

local function pack_field(job, field, value)
  job.packed[field] = value
  save_field(job, field, value)
end

-- A long value is cut into pieces, which are fields of the row like others; a very long one has a key of its own. Its own field
-- is then an empty mark. So the row keeps its compact form, in which some hundred bytes cost little more than themselves.
local function own_key(job, name)
  return K.blob(SHORT[name], job.id)
end

local function cut(job, name, value)
  local count = math.ceil(#value / BLOB_LIMIT)
  for nth = 1, count do
    local field, at = PIECE[name][nth], (nth - 1) * BLOB_LIMIT
    job.pieces[field] = string.sub(value, at + 1, at + BLOB_LIMIT)
    save_field(job, field, job.pieces[field])
  end
  return count
end

-- Where `value` is long it is put where long ones stand; what is there of another goes.
local function put_long(job, name, value)
  local very_long, count = #value > PIECES * BLOB_LIMIT, 0
  local had_key = job[name] == '' and not job.pieces[PIECE[name][1]]
  if very_long then
    redis.call('SET', own_key(job, name), value)
  elseif #value > BLOB_LIMIT then
    count = cut(job, name, value)
  end
  if had_key and not very_long then redis.call('DEL', own_key(job, name)) end
  for nth = count + 1, PIECES do
    local field = PIECE[name][nth]
    if not job.pieces[field] then break end
    job.pieces[field] = nil
    drop_field(job, field)
  end
end

local function put_blob(job, name, value)
  if #value > BLOB_LIMIT or job[name] == '' then put_long(job, name, value) end
  set(job, name, #value > BLOB_LIMIT and '' or value)
end

-- A job of which only some fields were read has no pieces.
local function read_pieces(job, name)
  local pieces = {}
  for nth, value in ipairs(redis.call('HMGET', K.row(job.id), unpack(PIECE[name]))) do
    pieces[PIECE[name][nth]] = value or nil
  end
  return pieces
end

local function get_blob(job, name)
  local value = job[name]
  if value ~= '' then return value or '' end
  local pieces, found = job.pieces or read_pieces(job, name), {}
  for nth = 1, PIECES do found[nth] = pieces[PIECE[name][nth]] end
  return #found > 0 and table.concat(found) or redis.call('GET', own_key(job, name)) or ''
end

-- A value that is replaced, or goes when there is no other.
local function put_or_drop_blob(job, name, value)
  if value ~= '' then return put_blob(job, name, value) end
  if job[name] == '' then put_long(job, name, '') end
  if job[name] then unset(job, name) end
end

local function save(job)
  if #job.saved > 0 then
    redis.call('HSET', K.row(job.id), unpack(job.saved))
    job.saved = {}
  end
  if next(job.gone) then
    local gone = {}
    for field in pairs(job.gone) do gone[#gone + 1] = field end
    redis.call('HDEL', K.row(job.id), unpack(gone))
    job.gone = {}
  end
end
