"""What the API needs of an application. `tenure.Tenure` is one; the API knows only this much of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..lease.ledger import Ledger
from ..lease.ledgers import Ledgers
from ..lease.requests import Options
from ..lease.tasks import Registry, Task
from ..scheduler.history import History
from ..scripts.loader import Client


class Facts(Protocol):
    """What the store said about itself."""

    @property
    def address(self) -> str: ...
    @property
    def product(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def durability(self) -> str: ...
    @property
    def declared(self) -> bool: ...
    @property
    def cluster(self) -> bool: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...


class Store(Protocol):
    def check(self) -> Facts:
        """Ask the server now. Raises the StoreError that says what is wrong with it."""
        ...


class Started(Protocol):
    """An enqueued job; `created` is False when its idempotency key already had one."""

    @property
    def id(self) -> str: ...
    @property
    def created(self) -> bool: ...


class Hints(Protocol):
    def listen(self, listener: Callable[[tuple[str, str] | None], None]) -> None: ...
    def leave(self, listener: Callable[[tuple[str, str] | None], None]) -> None: ...


class App(Protocol):
    @property
    def registry(self) -> Registry: ...

    @property
    def hints(self) -> Hints:
        """The one subscription of the process."""
        ...

    @property
    def store(self) -> Store: ...

    @property
    def archive(self) -> History | None:
        """What knows of what the store has let go."""
        ...

    def about(self) -> Mapping[str, dict[str, object]]:
        """What somebody who looks into a failure should know: versions, settings without secrets."""
        ...

    def ledgers(self) -> Ledgers: ...

    def ledger(self, tenant: str) -> Ledger: ...

    def blocking_redis(self) -> Client: ...

    def check_binding(self, name: str) -> object:
        """Raises UnknownBinding."""
        ...

    def enqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options
    ) -> Started: ...
