-- Take the next step of the walk that brings the jobs of an instance after its flag.
--
-- KEYS home      hash  the tenant's meta
-- ARGV instance  text  which
-- ARGV epoch     text  of which word: after a later one there is nothing to go on with; empty: whichever
-- ARGV most      int   how many jobs the step looks at
-- FLAGS          allow-oom
-- GIVES          {"1" if it goes on, else "0", news: {pool, due, version}}

if epoch ~= '' and redis.call('HGET', K.instance(instance), 'epoch') ~= epoch then return {'0', {}} end
local goes_on = walk(instance, most)
return {goes_on and '1' or '0', news()}
