"""What goes to the store, and when: claims, outcomes and checks in one batch at a time, renewals beside them."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ..lease.ledgers import Ledgers
from .claims import Claims
from .clock import NEVER
from .courier import Courier
from .crew import Crew
from .outbox import Outbox
from .renewals import Renewals

SWITCH_S = 0.0005
"""A courier must not wait long for the loop, nor the loop for it."""


class Exchange:
    """Two couriers, so that renewals never queue behind other calls. To be made in the process that works."""

    def __init__(
        self,
        ledgers: Ledgers,
        crew: Crew,
        claims: Claims,
        outbox: Outbox,
        renewals: Renewals,
        renew_s: float,
        poke: Callable[[], None],
    ) -> None:
        sys.setswitchinterval(SWITCH_S)
        self._courier = Courier(ledgers.scripts, "tenure-courier", poke)
        self._renewer = Courier(ledgers.scripts, "tenure-renewer", poke)
        self._crew = crew
        self._claims = claims
        self._outbox = outbox
        self._renewals = renewals
        self._renew_s = renew_s
        self._renew_at = 0.0

    @property
    def quiet(self) -> bool:
        """Whether the store knows all that we know, and we all that we asked it."""
        return self._outbox.settled and not self._claims.has_news and not self._courier.busy

    def read(self) -> bool:
        """Read the answers that have come. Whether there were any, but for renewals."""
        self._renewer.read()
        return self._courier.read()

    def send(self, now: float) -> None:
        """Send what is due, as far as the couriers are free."""
        if now >= self._renew_at and not self._renewer.busy:
            self._renew_at = now + self._renew_s
            self._renewer.send(self._renewals.posts(self._crew.held_since_before(now - self._renew_s / 2)))
        if not self._courier.busy and self._send_at(now) <= now:
            checks = self._renewals.posts(self._crew.take_stale())
            self._courier.send([*checks, *self._outbox.posts(now), *self._claims.posts(now)])

    def next(self, now: float) -> float:
        """When there may be something to send that can be sent."""
        renew_at = NEVER if self._renewer.busy else self._renew_at
        return renew_at if self._courier.busy else min(renew_at, self._send_at(now))

    def _send_at(self, now: float) -> float:
        if self._crew.has_stale:
            return now
        return min(self._claims.send_at(now), self._outbox.send_at(now, alone=self._crew.empty))

    def close(self) -> None:
        self._courier.close(timeout=0.5)
        self._renewer.close(timeout=0.1)
