-- Fire records: one list for each trigger and UTC month, each record
-- "instant outcome reason job at scheduler until count", its empty parts written "-".

local function record_fire(job_key, trigger, month, parts)
  for at, part in ipairs(parts) do
    if part == '' then parts[at] = '-' end
  end
  redis.call('RPUSH', K.fires(month, trigger, job_key), table.concat(parts, ' '))
end
