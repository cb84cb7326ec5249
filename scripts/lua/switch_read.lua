-- A tenant's scheduling switch as it stands.
--
-- KEYS home  hash  the tenant's meta
-- FLAGS no-writes
-- GIVES      {"1" if scheduling is disabled, what is wrong with the settings or "", when it ended by itself or "", flat list of the
--            settings}

return switch.told()
