"""The tenant's switch: scheduling is disabled and enabled again, and nothing planned is touched by it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..lease.instants import rfc3339
from ..lease.ledger import Ledger
from ..lease.views import pairs
from ..scripts import Call
from ..scripts.errors import BadInput, StoreError
from ..scripts.loader import Arg, texts
from .visits import tell


@dataclass(frozen=True, slots=True)
class Switch:
    """How it stands. Times are epoch ms; `since` is None while nobody has ever touched it. `trouble` says why the
    settings cannot be read, and what to do: then nothing fires.
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
        return _switch(self._ledger.tenant, *self._run("switch_read"))

    def glance(self) -> Switch:
        """As `get`; where the store cannot be asked, that is the trouble, so that a list goes on with other tenants."""
        try:
            return self.get()
        except StoreError as exc:
            tenant = self._ledger.tenant
            said = f"the scheduling settings of tenant {tenant} cannot be read: {exc}; it gets no new fires"
            return Switch(tenant, enabled=False, trouble=said)

    def set(self, *, enabled: bool, by: str = "", reason: str = "", until: int | None = None) -> Switch:
        """Disable scheduling, until an instant (epoch ms) or until it is enabled; or enable it: from the next instant
        on, what was planned before does not run. Answers how it stands; what stands so already is not changed, but
        for a new `reason` and who gives it. Settings that cannot be read are written anew.

        Raises BadInput for an `until` that has passed, SchedulingDisabled for settings of a newer Tenure.
        """
        self._ledger.index.register(self._ledger.tenant)
        args: dict[str, Arg] = {
            "enabled": "1" if enabled else "",
            "by": by,
            "reason": reason,
            "ends": "" if until is None else until,
        }
        try:
            _changed, told, earliest, version = self._run("switch_set", **args)
        except BadInput as exc:  # the script has only the numbers
            raise BadInput(re.sub(r"\d{5,}", lambda ms: rfc3339(int(ms[0])), str(exc))) from None
        tell(self._ledger, earliest, version)
        return _switch(self._ledger.tenant, *told)

    def _run(self, script: str, **args: Arg) -> list[Any]:
        return self._ledger.scripts.run(Call(script, self._ledger.keys.home, args, list))


def _switch(tenant: str, disabled: bytes, trouble: bytes, ended: bytes, flat: list[bytes]) -> Switch:
    said: Mapping[str, str] = dict(pairs(texts(flat)))
    revision = int(said["revision"]) if said.get("revision", "").isdigit() else 0
    if ended:
        return Switch(tenant, True, _ended(said), since=int(ended), revision=revision)
    return Switch(
        tenant=tenant,
        enabled=disabled != b"1",
        reason=said.get("reason", ""),
        by=said.get("by", ""),
        since=_ms(said, "since") or None,
        until=_ms(said, "until"),
        revision=revision,
        trouble=trouble.decode(errors="replace"),
    )


def _ended(said: Mapping[str, str]) -> str:
    by, reason = said.get("by", ""), said.get("reason", "")
    return (
        "ended by itself; it was disabled" + (f" by {by}" if by else "") + (f": {reason}" if reason else "")
    )


def _ms(said: Mapping[str, str], name: str) -> int | None:
    value = said.get(name, "")
    return int(value) if value.isdigit() else None
