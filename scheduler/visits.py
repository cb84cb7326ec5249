"""When a tenant wants to be visited for its triggers, as scripts say and the tenant index is told."""

from __future__ import annotations

from ..lease.jobs import FIRE, News
from ..lease.ledger import Ledger


def visit(tenant: str, earliest: str | bytes, version: str | bytes) -> News:
    """What a script answered; an empty `earliest` is never."""
    return News(tenant, FIRE, int(earliest) if earliest else None, int(version))


def tell(ledger: Ledger, earliest: str | bytes, version: str | bytes) -> None:
    """Let the tenant index know when the next trigger is due."""
    ledger.index.put([visit(ledger.tenant, earliest, version)])
