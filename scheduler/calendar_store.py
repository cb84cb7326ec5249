"""The calendars of one tenant, stored by name: put, get, list, delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..lease.ledger import Ledger
from ..lease.payload import digest, pack, unpack
from ..lease.views import pairs
from ..lease.who import check_word
from ..scripts import Call
from ..scripts.errors import NotFound
from ..scripts.loader import Arg, texts
from .calendars import Calendar, check_name, read_calendar
from .put import Put
from .visits import tell

LARGEST = 64 * 1024
SHOWN_USERS = 100


@dataclass(frozen=True, slots=True)
class CalendarView:
    """A calendar as it stands. `used_by` are the JobKeys of schedules with a trigger in it, of its first 100."""

    tenant: str
    name: str
    revision: int
    data: Mapping[str, Any]
    stored: int
    by: str
    reason: str
    used_by: Sequence[str]


class Calendars:
    """Operations on the calendars of one tenant."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def put(
        self,
        name: str,
        data: Mapping[str, Any],
        *,
        expected_revision: int | None = None,
        by: str = "",
        reason: str = "",
    ) -> Put:
        """Store a calendar; the same again changes nothing. The triggers in it are planned anew at once: what it
        excludes does not fire any more, what it frees fires if it is after now.

        Raises BadCalendar, StalePlan when `expected_revision` is not the stored one (0: nothing is stored).
        """
        check_name(name)
        check_word(by, reason)
        read_calendar(data, "UTC")
        packed = pack(dict(sorted(data.items())), what=f"calendar {name}", limit=LARGEST)
        self._ledger.index.register(self._ledger.tenant)
        revision, changed, left, earliest, version = self._run(
            "calendar_put",
            name=name,
            data=packed,
            digest=digest(packed),
            expected="" if expected_revision is None else expected_revision,
            by=by,
            reason=reason,
        )
        while left:
            left, earliest, version = self._run("calendar_replan", name=name)
        tell(self._ledger, earliest, version)
        return Put(int(revision), changed != "", changed == "new")

    def get(self, name: str) -> CalendarView:
        """One calendar. Raises NotFound."""
        check_name(name)
        found = self._read(f"[{name}", f"[{name}", 1)
        if not found:
            raise NotFound(
                f"calendar {name!r} is not stored in tenant {self._ledger.tenant}",
                hint="tenure calendars list",
            )
        return found[0]

    def list(self, limit: int = 50, after: str | None = None) -> Sequence[CalendarView]:
        """Calendars in the order of their names, from the one after `after` on."""
        return self._read(f"({after}" if after else "-", "+", limit)

    def delete(self, name: str, *, expected_revision: int | None = None) -> bool:
        """Delete a calendar that no schedule uses; answers whether there was one. Raises InUse naming those that do,
        StalePlan when `expected_revision` is not the stored one.
        """
        expected: Arg = "" if expected_revision is None else expected_revision
        args: dict[str, Arg] = {"name": check_name(name), "expected": expected}
        call = Call("calendar_delete", self._ledger.keys.home, args, bytes.decode)
        return self._ledger.scripts.run(call) == "1"

    def named(self, names: Iterable[str]) -> Mapping[str, Calendar]:
        """Those of these calendars that are stored, as triggers use them."""
        rows = [row for name in sorted(set(names)) for row in self._rows(f"[{name}", f"[{name}", 1, 0)]
        return {
            name: Calendar(name, int(fields["revision"]), fields["data"]) for name, fields, _users in rows
        }

    def _read(self, start: str, end: str, limit: int) -> Sequence[CalendarView]:
        return [
            CalendarView(
                tenant=self._ledger.tenant,
                name=name,
                revision=int(fields["revision"]),
                data=cast("Mapping[str, Any]", unpack(fields["data"])),
                stored=int(fields["stored"]),
                by=fields["by"].decode(),
                reason=fields["reason"].decode(),
                used_by=users,
            )
            for name, fields, users in self._rows(start, end, limit, SHOWN_USERS)
        ]

    def _rows(
        self, start: str, end: str, limit: int, users: int
    ) -> Sequence[tuple[str, Mapping[str, bytes], Sequence[str]]]:
        args: dict[str, Arg] = {"from": start, "to": end, "limit": limit, "users": users}
        call: Call[list[Any]] = Call("calendars_read", self._ledger.keys.home, args, list)
        return [
            (name.decode(), {field.decode(): value for field, value in pairs(flat)}, texts(used))
            for name, flat, used in self._ledger.scripts.run(call)
        ]

    def _run(self, script: str, **args: Arg) -> Sequence[str]:
        return self._ledger.scripts.run(Call(script, self._ledger.keys.home, args, texts))


def calendars_of(flat: Sequence[bytes]) -> Mapping[str, Calendar]:
    """What scripts answer of the calendars that triggers stand in: name, revision and data of each."""
    names = [name.decode() for name in flat[::3]]
    return {
        name: Calendar(name, int(revision), data)
        for name, revision, data in zip(names, flat[1::3], flat[2::3], strict=True)
    }
