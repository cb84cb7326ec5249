"""How far a worker trusts a lease: what may be over for the server is over for us."""

from __future__ import annotations

from typing import NamedTuple

from ..lease.jobs import Lease
from .clock import ServerClock


class Hold(NamedTuple):
    """A lease in local instants."""

    since: float
    """The whole time of a lease may be counted from here."""
    until: float
    """Not to be trusted any longer than this."""


def hold(clock: ServerClock, lease_ms: int, lease: Lease, expires_at: int, sent_at: float) -> Hold:
    """What a claim or a renewal that was first sent at `sent_at` gives, by its answer `expires_at`.

    A call that was sent again may have been granted the first time. It is counted from then, and never ends later than
    the server said: of the two, the earlier counts.
    """
    ends_at = clock.earliest(expires_at)
    lease_s = lease_ms / 1000
    since = sent_at
    # a lease that ends with its job's deadline: the job is out of time, and that is told by another name than a loss
    if expires_at < lease.deadline:
        since = min(since, ends_at - lease_s)
    return Hold(since, min(since + lease_s, ends_at))
