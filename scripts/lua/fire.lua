-- Bring a due trigger up to date: what becomes of its due instants is recorded, those that fire get their jobs, and the next
-- one is planned. Any number of schedulers may try; one moves the trigger, the others are told that the plan is stale.
--
-- KEYS home       hash  the tenant's meta
-- ARGV job_key    text  which schedule
-- ARGV trigger    text  which of its triggers
-- ARGV revision   text  the revision the plan was made from
-- ARGV calendar   text  the revision of the trigger's calendar that the plan was made by; empty: it stands in none
-- ARGV planned    ms    the next fire time the plan was made from
-- ARGV following  text  the next fire time from now on; empty: there is none
-- ARGV made       ms    when the plan was made
-- ARGV scheduler  text  who fires
-- ARGV task       text  what to run
-- ARGV pool       text  where
-- ARGV pace       ms    the shortest time between two jobs that are spread
-- ARGV jitter     ms    how much later the jobs are due
-- ARGV resumed    ms    from when on scheduling runs again, as the plan was made; 0: it always has
-- ARGV overlap    text  what if the job of the last fire has not ended: allow, skip, queue or cancel_running
-- ITEMS           outcome reason month first last count id delay pairs, then that many pairs of (field, value) of the job's row;
--                 with an id `first` fires, without one they are passed over; oldest first; with a delay it is one of
--                 those that are spread, and so much later than the first of them
-- GIVES           {how many jobs, news: {pool, due, version}, earliest fire or "", version}
-- FAILS           NOT_FOUND STALE_PLAN BAD_INPUT SCHEDULING_DISABLED

local STALE_MS = 10000

local key = K.schedule(job_key)
local at_revision, next_fire, last_fire, paced_until, named, unread, paused = unpack(redis.call('HMGET', key, 'revision',
  'next:' .. trigger, 'last:' .. trigger, 'pace:' .. trigger, 'calendar:' .. trigger, 'unread:' .. trigger, 'paused'))
if not at_revision then return refuse('NOT_FOUND', 'schedule ' .. job_key .. ' is not stored') end

local steps, newest, at = {}, planned - 1, FIRST
while at <= #ARGV do
  local fields_end = at + 8 + 2 * ARGV[at + 8]
  local step = {outcome = ARGV[at], reason = ARGV[at + 1], month = ARGV[at + 2], first = ARGV[at + 3], last = ARGV[at + 4],
    count = ARGV[at + 5], id = ARGV[at + 6], delay = ARGV[at + 7], fields = {unpack(ARGV, at + 9, fields_end)}}
  at = fields_end + 1
  steps[#steps + 1] = step
  if tonumber(step.first) <= newest then
    return refuse('BAD_INPUT', 'fire of ' .. job_key .. ' refused: ' .. step.first .. ' is not after ' .. text(newest))
  end
  newest = tonumber(step.last)
end

local last_step = steps[#steps]
if last_step and last_step.id ~= '' and last_fire == last_step.first and next_fire ~= text(planned)
  and redis.call('EXISTS', K.row(last_step.id)) == 1 then
  return {'0', {}, earliest_fire(), text(read_clock())}
end
local it, trouble, step = gate()
local closed = switch.refusal(it, trouble, step)
if closed then return closed end
if at_revision ~= revision or it.resumed ~= resumed or tonumber(next_fire or -1) ~= planned or now - made > STALE_MS then
  return refuse('STALE_PLAN', 'trigger ' .. trigger .. ' of ' .. job_key .. ' is at revision ' .. at_revision
    .. ' with next fire ' .. (next_fire or 'none') .. ', the plan was for ' .. revision .. ' and ' .. text(planned)
    .. ', made at ' .. text(made))
end
if calendars.revision_of(named) ~= calendar then
  return refuse('STALE_PLAN', 'calendar ' .. (named or 'none') .. ' of ' .. job_key .. ' has changed since the plan was made')
end
if newest > now or planned > now then
  return refuse('STALE_PLAN', 'fire of ' .. job_key .. ' up to ' .. text(newest) .. ' refused: not due, the clock says ' .. text(now))
end
if paused or (following ~= '' and tonumber(following) <= newest) then
  return refuse('BAD_INPUT', 'fire of ' .. job_key .. ' up to ' .. text(newest) .. ' refused: it is paused, or the next one not later')
end

-- Jobs that are spread begin when those of the calls before are through.
local free = math.max(now, tonumber(paced_until or 0))
local function due_of(step)
  return step.delay == '' and now + jitter or free + step.delay
end

-- Why the job of the schedule's last fire stands in the way, or nil. Under `cancel_running` it is canceled and does not; under
-- `queue` it does while it waits itself for the one before it: at most one waits.
local function overlaps()
  local before = overlap ~= 'allow' and redis.call('HGET', key, 'job')
  local job = before and load(before)
  if not job or ENDED[job.state] then return nil end
  if overlap == 'skip' then return 'overlap' end
  if overlap == 'queue' then return job.state == 'pending' and job.attempts == '0' and 'queue_full' or nil end
  stop(job, 'cancel', 'schedule ' .. job_key, 'its next fire is due')
end

local made_jobs = 0
for _, step in ipairs(steps) do
  local in_the_way = step.id ~= '' and overlaps()
  if step.id == '' or in_the_way then
    fires.pass(job_key, trigger, scheduler, in_the_way or step.reason, step.month, step.first, step.last, step.count)
  else
    local job = create(step.id, task, pool, due_of(step), step.fields)
    announce(job)
    if ENDED[job.state] then log.finish(job) end
    fires.record(job_key, trigger, step.month,
      {step.first, step.outcome, step.reason, step.id, text(now), scheduler, '', '1'})
    redis.call('HSET', key, 'last:' .. trigger, step.first, 'job', step.id)
    made_jobs = made_jobs + 1
  end
end
if last_step and last_step.delay ~= '' then redis.call('HSET', key, 'pace:' .. trigger, text(free + last_step.delay + pace)) end
if unread then redis.call('HDEL', key, 'unread:' .. trigger) end
plan_next(job_key, trigger, following, false, it)
return {text(made_jobs), news(), earliest_fire(it), tick()}
