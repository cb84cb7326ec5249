-- How far a tenant's clock is and where it began. What is lower, or began later, than somebody saw before, has been lost.
--
-- KEYS home  hash  the tenant's meta
-- FLAGS no-writes
-- GIVES      {clock, where it began}, 0 for what is not there

local clock, born = unpack(redis.call('HMGET', K.meta(), 'clock', 'born'))
return {clock or '0', born or '0'}
