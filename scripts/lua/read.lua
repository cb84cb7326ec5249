-- Jobs as they stand, with their long values, errors and progress; and what blocks each, by the claim's own rule.
--
-- KEYS home   hash  the tenant's meta
-- ARGV lines  int   how many log lines of background tasks, the newest
-- ARGV deeds  int   how many entries of what people did to each, the newest
-- REST id
-- FLAGS no-writes
-- GIVES       {now, for each what `shown` gives}

local answers = {text(now)}
for at = FIRST, #ARGV do answers[#answers + 1] = shown(ARGV[at], lines, deeds) end
return answers
