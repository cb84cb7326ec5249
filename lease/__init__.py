"""Jobs, leases and everything that keeps them honest: the ledger and its verbs, the tenant index, named leases."""
