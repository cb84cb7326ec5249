-- Rate limits: at most so many starts in any period. Starts are counted by the sixtieth of the period that they fall in, and a
-- sixtieth counts until it is over by a whole period: so a limit is never passed, and a start waits a sixtieth longer at most.
-- A limit is written "many period", the starts "sixtieth:many ...".

local SIXTIETHS = 60

local function width_of(period)
  return math.ceil(period / SIXTIETHS)
end

-- How many may start now, and, when none may, from when on.
local function allowance(limit, used)
  local many, period = string.match(limit, '^(%d+) (%d+)$')
  local width, first = width_of(period), nil
  local from = math.floor((now - period) / width)
  local left = tonumber(many)
  for slot, starts in string.gmatch(used or '', '(%d+):(%d+)') do
    slot = tonumber(slot)
    if slot >= from then
      left = left - starts
      first = math.min(first or slot, slot)
    end
  end
  return left, left <= 0 and first and (first + 1) * width + period or now
end

-- The starts with one more, without those that count no more.
local function with_start(limit, used)
  local period = tonumber(string.match(limit, ' (%d+)$'))
  local width = width_of(period)
  local from, current = math.floor((now - period) / width), math.floor(now / width)
  local kept, mine = {}, 1
  for slot, starts in string.gmatch(used or '', '(%d+):(%d+)') do
    if tonumber(slot) == current then
      mine = mine + starts
    elseif tonumber(slot) >= from then
      kept[#kept + 1] = slot .. ':' .. starts
    end
  end
  kept[#kept + 1] = text(current) .. ':' .. text(mine)
  return table.concat(kept, ' '), period
end
