"""The tenant's switch: scheduling is disabled and enabled again, and nothing planned is touched by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..lease.ledger import Ledger
from ..lease.views import pairs
from ..scripts import Call
from ..scripts.loader import Arg, texts
from .visits import tell


@dataclass(frozen=True, slots=True)
class Switch:
    """How it stands. Times are epoch ms; `since` is None while nobody has ever touched it. `trouble` says why the
    settings cannot be understood: then nothing fires.
    """

    tenant: str
    enabled: bool
    reason: str = ""
    by: str = ""
    since: int | None = None
    until: int | None = None
    revision: int = 0
    trouble: str = ""


class Scheduling:
    """The switch of one tenant."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def get(self) -> Switch:
        disabled, trouble, flat = self._run("switch_read")
        return _switch(self._ledger.tenant, disabled != b"1", trouble.decode(), flat)

    def set(self, *, enabled: bool, by: str = "", reason: str = "", until: int | None = None) -> Switch:
        """Disable scheduling, until an instant (epoch ms) or until it is enabled; or enable it: from the next instant
        on, what was planned before does not run. Answers how it stands; what stands so already is not changed.

        Raises BadInput for an `until` that has passed.
        """
        self._ledger.index.register(self._ledger.tenant)
        args: dict[str, Arg] = {
            "enabled": "1" if enabled else "",
            "by": by,
            "reason": reason,
            "ends": "" if until is None else until,
        }
        _changed, flat, earliest, version = self._run("switch_set", **args)
        tell(self._ledger, earliest, version)
        return _switch(self._ledger.tenant, enabled, "", flat)

    def _run(self, script: str, **args: Arg) -> list[Any]:
        return self._ledger.scripts.run(Call(script, self._ledger.keys.home, args, list))


def _switch(tenant: str, enabled: bool, trouble: str, flat: list[bytes]) -> Switch:
    said: Mapping[str, str] = dict(pairs(texts(flat)))
    return Switch(
        tenant=tenant,
        enabled=enabled,
        reason=said.get("reason", ""),
        by=said.get("by", ""),
        since=_ms(said, "since"),
        until=_ms(said, "until"),
        revision=int(said["revision"]) if said.get("revision", "").isdigit() else 0,
        trouble=trouble,
    )


def _ms(said: Mapping[str, str], name: str) -> int | None:
    value = said.get(name, "")
    return int(value) if value.isdigit() else None
