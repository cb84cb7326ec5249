-- Fire records of a trigger in one UTC month, newest first.
--
-- KEYS home     hash  the tenant's meta
-- ARGV job_key  text  which schedule
-- ARGV trigger  text  which of its triggers
-- ARGV month    text  YYYYMM
-- ARGV before   int   the instant to go down from, itself not included; empty: the newest is the first
-- ARGV limit    int   how many at most
-- FLAGS no-writes
-- GIVES         what `books.page_down` gives

return books.page_down(K.fires(month, trigger, job_key), before, limit)
