"""Several pieces of ordinary code that take turns at their calls, in an order that the test chooses.

Each runs in a thread of its own and stands still before every call until it is told to go on, so whatever can come in
between two calls of one of them can be tried, the same way each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from tenure.testing import Died

_here = threading.local()


class Strand:
    """One of them. `step` lets it run to its next call, or to its end; then `ended` is true."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.ended = False
        self._doomed = False
        self._error: BaseException | None = None
        self._go, self._stands = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self._live, args=(work,), daemon=True).start()

    def step(self) -> None:
        """Raises what the work raised."""
        self._go.release()
        self._stands.acquire()
        if self._error:
            raise self._error

    def kill(self) -> None:
        """It dies where it stands: no line of it runs any more but what unwinds."""
        self._doomed = True
        while not self.ended:
            self._go.release()
            self._stands.acquire()

    def _live(self, work: Callable[[], object]) -> None:
        _here.strand = self
        self._go.acquire()
        try:
            if not self._doomed:
                work()
        except Died:
            pass
        except BaseException as exc:
            self._error = exc
        finally:
            self.ended = True
            self._stands.release()

    def _stand(self) -> None:
        self._stands.release()
        self._go.acquire()
        if self._doomed:
            raise Died


def stand_still() -> None:
    """Let others come in between here. Outside of a strand it does nothing."""
    strand: Strand | None = getattr(_here, "strand", None)
    if strand is not None:
        strand._stand()
