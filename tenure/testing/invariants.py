"""What must hold after every script, checked on a dump; the I-numbers are those of the reliability notes.

`Invariants` remembers what it saw, so that a second look also finds an ended attempt that changed, a fence that went
back or a job that left a final state. It knows the layout as the scripts do, through the key and field tables, and
works out every set, list and count from the rows alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..lease.ids import fire_id
from ..lease.ledger import HISTORY
from ..scripts.errors import BadInput
from ..scripts.fields import BLOB_LIMIT, BLOBS, DEFAULTS, FIELDS, PIECES, piece
from ..scripts.keys import INDEX_KEYS, TENANT_KEYS, parse
from ..scripts.states import BY_HAND, ENDED, Cause, DeadReason, State
from .compare import same as _same
from .dump import Dump
from .lines import due_work_is_advertised, keys_are_held_by_those_who_run, lines_follow_from_rows
from .logged import books_are_known, the_log_tells_of_fires

BAND = 1 << 42
SAFE_INTEGER = 1 << 53
FIRED = ("fired", "misfired")
"""The outcomes of an instant that has a job."""
_REASONS: dict[State, tuple[str | None, ...]] = {
    State.DEAD: tuple(DeadReason),
    State.FAILED: (DeadReason.ATTEMPTS_EXHAUSTED, DeadReason.PERMANENT_ERROR),
    State.CANCELED: (None, *DeadReason),  # a dead or failed job that was canceled still says why it had ended
}
NOTES = ("q", "p")
STOPPED = (State.DEAD, State.FAILED, State.CANCELED, State.PAUSED, State.WAITING)

_TYPES = {family.name: family.type for family in TENANT_KEYS + INDEX_KEYS}
_LONG = {short: long for long, short in FIELDS.items()}
_KNOWN = {*_LONG, *(piece(name, nth) for name in BLOBS for nth in range(1, PIECES + 1))}


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    generation: int
    status: str
    cause: str
    fence: int
    start: int
    length: int
    packed: str

    @classmethod
    def read(cls, number: int, packed: str) -> Attempt:
        generation, status, cause, fence, start, length, _chunks = packed.split(" ")
        return cls(number, int(generation), status, cause, int(fence), int(start), int(length), packed)

    @property
    def open(self) -> bool:
        return self.status == "running"


@dataclass(frozen=True, slots=True)
class Row:
    """A job as its row says, defaults filled in; long values are left where they are."""

    id: str
    fields: dict[str, str]
    state: State
    attempts: list[Attempt]
    stored: dict[str, bytes]

    @classmethod
    def read(cls, id_: str, stored: dict[str, bytes]) -> Row:
        text = {name: value.decode("utf-8", "surrogateescape") for name, value in stored.items()}
        fields = DEFAULTS | {_LONG[name]: value for name, value in text.items() if name in _LONG}
        numbers = sorted(int(name[1:]) for name in text if name[0] == "a" and name[1:].isdigit())
        attempts = [Attempt.read(number, text[f"a{number}"]) for number in numbers]
        return cls(id_, fields, State(fields["state"]), attempts, stored)

    def pieces(self, name: str) -> bytes:
        """A long value that stands in the row in pieces; empty if it does not."""
        return b"".join(self.stored.get(piece(name, nth), b"") for nth in range(1, PIECES + 1))

    def is_cut(self, name: str, whole: bytes) -> bool:
        """Whether its pieces are as long as they can be, and stand one after the other."""
        cut = [whole[at : at + BLOB_LIMIT] for at in range(0, len(whole), BLOB_LIMIT)]
        return all(self.stored.get(piece(name, nth)) == part for nth, part in enumerate(cut, 1))

    def number(self, name: str) -> int:
        return int(self.fields[name])

    @property
    def run_at(self) -> int:
        return int(self.fields.get("run_at") or self.fields["created"])

    @property
    def owes_its_start(self) -> bool:
        return "start_by" in self.fields and self.state is State.PENDING and not self.attempts

    @property
    def rank(self) -> float:
        return float(self.number("priority") * BAND + self.run_at)


@dataclass(frozen=True)
class Tenant:
    """The keys of one tenant, by family and then by the last part of their names."""

    name: str
    keys: dict[str, dict[tuple[str, ...], Any]]

    def one(self, family: str, default: Any) -> Any:
        return self.keys.get(family, {}).get((), default)

    def all(self, family: str) -> dict[tuple[str, ...], Any]:
        return self.keys.get(family, {})

    @cached_property
    def rows(self) -> list[Row]:
        return [
            Row.read(id_, {name.decode(): value for name, value in stored.items()})
            for (id_,), stored in self.all("row").items()
        ]

    def long(self, row: Row, name: str) -> str:
        """A value of a row, wherever it is kept."""
        value = row.fields[name]
        if value or name not in BLOBS:
            return value
        kept: bytes = row.pieces(name) or self.all("blob").get((FIELDS[name], row.id), b"")
        return kept.decode()

    def words(self, job_id: str, attempt: int) -> dict[str, bytes]:
        """What is kept of an attempt in words: its error, stack and notes."""
        kept = self.all("errors").get((job_id,), {})
        marks = {_place_of_word(name): value for name, value in kept.items()}
        return {mark: value for (number, mark), value in sorted(marks.items()) if number == attempt}


@dataclass
class Invariants:
    """Checks dumps of one namespace, one after the other. `broken` answers a sentence for each broken invariant."""

    _ended: dict[tuple[str, str, int], str] = field(default_factory=dict[tuple[str, str, int], str])
    _last: dict[tuple[str, str], Row] = field(default_factory=dict[tuple[str, str], Row])
    _clocks: dict[str, int] = field(default_factory=dict[str, int])

    def check(self, dump: Dump) -> None:
        """Raise an AssertionError that lists what is broken."""
        broken = self.broken(dump)
        assert not broken, "the store is damaged:\n  " + "\n  ".join(broken)

    def broken(self, dump: Dump) -> list[str]:
        tenants, foreign = _by_tenant(dump)
        index = tenants.pop("@", Tenant("@", {}))
        return (
            foreign
            + [
                f"{said[0]} tenant {tenant.name}: {said[1]}"
                for tenant in tenants.values()
                for rule in (*_RULES, self._history, self._clock)
                for said in rule(tenant)
            ]
            + list(_unknown_tenants(index, tenants))
        )

    def _history(self, tenant: Tenant) -> Said:
        for row in tenant.rows:
            for attempt in row.attempts:
                if not attempt.open:
                    stands = f"{attempt.packed} {tenant.words(row.id, attempt.number)}"
                    before = self._ended.setdefault((tenant.name, row.id, attempt.number), stands)
                    if before != stands:
                        yield (
                            "I14",
                            f"ended attempt {attempt.number} of {row.id} was {before!r}, is {stands!r}",
                        )
            before_row = self._last.get((tenant.name, row.id))
            if before_row:
                yield from _step(before_row, row)
            self._last[tenant.name, row.id] = row

    def _clock(self, tenant: Tenant) -> Said:
        clock = _clock(tenant)
        if clock < self._clocks.get(tenant.name, 0):
            yield "I8", f"the tenant clock went back from {self._clocks[tenant.name]} to {clock}"
        self._clocks[tenant.name] = clock


Said = Iterator[tuple[str, str]]


def _by_tenant(dump: Dump) -> tuple[dict[str, Tenant], list[str]]:
    tenants: dict[str, Tenant] = {}
    foreign: list[str] = []
    for name, (kind, value) in dump.items():
        try:
            _namespace, tenant, family, parts = parse(name)
        except BadInput as exc:
            foreign.append(f"I40 {exc}")
            continue
        if _TYPES[family] != kind:
            foreign.append(f"I40 key {name} is a {kind}, the key table says {_TYPES[family]}")
            continue
        families = tenants.setdefault(tenant, Tenant(tenant, {})).keys
        families.setdefault(family, {})[tuple(parts.values())] = value
    return tenants, foreign


# -- one job ----------------------------------------------------------------------------------------------------------


def _rows_are_sound(tenant: Tenant) -> Said:
    for row in tenant.rows:
        for name, value in row.stored.items():
            if len(value) > BLOB_LIMIT:
                yield "layout", f"field {name} of {row.id} has {len(value)} bytes, over {BLOB_LIMIT}"
            if name not in _KNOWN and not (name[0] in "aw" and name[1:].isdigit()):
                yield "layout", f"field {name} of {row.id} is not in the field table"
        for name in BLOBS:
            whole = row.pieces(name)
            fits = BLOB_LIMIT < len(whole) <= PIECES * BLOB_LIMIT and row.fields.get(name) == ""
            if whole and not (fits and row.is_cut(name, whole)):
                yield "layout", f"the pieces of {name} of {row.id} are none of a long value"
        if not row.fields.get("task"):
            yield "I3", f"{row.id} has no task"
        reason = row.fields.get("dead_reason")
        if reason not in _REASONS.get(row.state, (None,)):
            yield "I3", f"{row.id} is {row.state} with dead_reason {reason}"
        if reason == DeadReason.EXPIRED and row.attempts:
            yield "I15", f"{row.id} is {row.state}({reason}) and was started"
        if row.state in ENDED and "finished" not in row.fields:
            yield "I3", f"{row.id} is {row.state} and has no time of its end"


def _attempts_are_numbered(tenant: Tenant) -> Said:
    for row in tenant.rows:
        numbers = [attempt.number for attempt in row.attempts]
        if ("started" in row.fields) != bool(numbers):
            yield (
                "I13",
                f"{row.id} has {len(numbers)} attempts and was started at {row.fields.get('started')}",
            )
        if numbers != list(range(1, row.number("attempts") + 1)):
            yield "I13", f"{row.id} counts {row.number('attempts')} attempts and has {numbers}"
        fences = [attempt.fence for attempt in row.attempts]
        if fences != sorted(set(fences)):
            yield "I8", f"fences of {row.id} do not grow: {fences}"
        open_ones = [attempt for attempt in row.attempts if attempt.open]
        if any(attempt is not row.attempts[-1] for attempt in open_ones):
            yield "I13", f"{row.id} has an open attempt that is not its last: {open_ones}"
        between_chunks = row.state is State.PENDING and row.number("chunk") > 0
        if open_ones and row.state is not State.RUNNING and not between_chunks:
            yield "I13", f"{row.id} is {row.state} with an open attempt"
        if row.state is State.RUNNING and not open_ones:
            yield "I13", f"{row.id} is running without an open attempt"
        for attempt in row.attempts:
            if (
                not attempt.open
                and attempt.status in ("failed", "canceled")
                and attempt.cause not in list(Cause)
            ):
                yield "I15", f"attempt {attempt.number} of {row.id} is {attempt.status} without a cause"


def _budgets_hold(tenant: Tenant) -> Said:
    for row in tenant.rows:
        for spent, limit, reason in (
            ("failures", "max_attempts", DeadReason.ATTEMPTS_EXHAUSTED),
            ("losses", "max_lost", DeadReason.LOST_TOO_OFTEN),
        ):
            if row.number(spent) > row.number(limit):
                yield "I13", f"{row.id} has {row.number(spent)} {spent}, over {limit} {row.number(limit)}"
            if row.number(spent) >= row.number(limit) and row.state not in (
                State.DEAD,
                State.FAILED,
                State.CANCELED,
            ):
                yield "I13", f"{row.id} is {row.state} with its {limit} used up"
            if row.fields.get("dead_reason") == reason and row.number(spent) < row.number(limit):
                yield "I15", f"{row.id} is dead({reason}) with {row.number(spent)} of {row.number(limit)}"


def _the_holder_is_known(tenant: Tenant) -> Said:
    running = tenant.one("running", {})
    clock = _clock(tenant)
    for row in tenant.rows:
        fence = int(row.fields.get("fence", 0))
        if not fence <= clock < SAFE_INTEGER:
            yield "I8", f"fence {fence} of {row.id} is ahead of the tenant clock {clock}"
        if row.state is State.RUNNING:
            if row.attempts and row.attempts[-1].fence != fence:
                yield "I7", f"{row.id} is held under {fence}, its attempt under {row.attempts[-1].fence}"
            if running.get(row.id.encode(), 0) > row.number("deadline"):
                yield "I11", f"the lease of {row.id} passes its deadline"


# -- sets and lists that follow from the rows --------------------------------------------------------------------------


def _sets_follow_from_rows(tenant: Tenant) -> Said:
    rows = tenant.rows
    starts = {row.id: float(row.fields["start_by"]) for row in rows if row.owes_its_start}
    yield from _same("I3", "latest starts", _scores(tenant.one("starts", {})), starts)
    yield from _same("I3", "running", _members(tenant.one("running", {})), _in_state(rows, State.RUNNING))
    for state in STOPPED:
        yield from _same(
            "I3",
            f"list of {state}",
            _members(tenant.all("stopped").get((state,), {})),
            _in_state(rows, state),
        )
    yield from _same(
        "I3", "list of succeeded", _members(tenant.one("succeeded", [])), _in_state(rows, State.SUCCEEDED)
    )


def _counts_follow_from_rows(tenant: Tenant) -> Said:
    expected = Counter(f"{row.fields['task']}|{row.state}" for row in tenant.rows)
    found = {name.decode(): int(number) for name, number in tenant.one("counts", {}).items()}
    yield from _same("I3", "counts", found, dict(expected))


def _figures_follow_from_rows(tenant: Tenant) -> Said:
    expected: Counter[str] = Counter()
    for row in tenant.rows:
        if row.state in (State.RUNNING, State.DEAD):
            expected[f"{row.state}|{row.fields['pool']}"] += 1
        elif row.state is State.PENDING and row.number("failures"):
            expected[f"again|{row.fields['task']}"] += 1
    found = {name.decode(): int(number) for name, number in tenant.one("figures", {}).items()}
    counted = {name: number for name, number in found.items() if not name.startswith(("claim|", "claimed|"))}
    yield from _same("I3", "figures", counted, dict(expected))
    tasks = {row.fields["task"] for row in tenant.rows}
    for name in found:
        if name.startswith("claimed|") and name[8:] not in tasks:
            yield "I3", f"the last claim of task {name[8:]} is kept, which has no job any more"


def _minutes_agree_with_rows(tenant: Tenant) -> Said:
    """Of each minute that is kept: an attempt that began is one wait of its pool, one that ended counts for its task.

    Rows that have gone since are still in the counts. A minute that the tenant clock has left over an hour ago is not
    looked at: if it is written again, then because the clock went back.
    """
    meta = tenant.one("meta", {})
    some_have_gone = b"gone" in meta
    for (slot,), stored in tenant.all("minute").items():
        fields = _text(stored)
        minute = int(fields.pop("m"))
        if minute % 61 != int(slot):
            yield "layout", f"slot {slot} holds minute {minute}"
        if _clock(tenant) // 60_000_000 >= minute + 61:
            continue
        found: Counter[str] = Counter()
        for name, number in fields.items():
            kind, _, of = name.partition("|")
            found[f"{'began' if kind.isdigit() else kind}|{of}"] += int(number)
        expected = _happened(tenant.rows, minute)
        if some_have_gone:
            found = Counter({name: min(found[name], number) for name, number in expected.items()})
        yield from _same("I14", f"minute {minute}", dict(+found), dict(+expected))


def _happened(rows: list[Row], minute: int) -> Counter[str]:
    """What a minute must hold of the attempts of these rows."""
    expected: Counter[str] = Counter()
    for row in rows:
        pool, task = row.fields["pool"], row.fields["task"]
        for attempt in row.attempts:
            if attempt.start // 60_000 == minute:
                expected[f"began|{pool}"] += 1
            if not attempt.open and (attempt.start + attempt.length) // 60_000 == minute:
                expected[f"n|{task}"] += 1
                expected[f"d|{task}"] += attempt.length
                expected[f"f|{task}"] += attempt.status == "failed"
    return expected


def _journals_cover_rows(tenant: Tenant) -> Said:
    expected: dict[str, list[str]] = {}
    for row in tenant.rows:
        expected.setdefault(row.fields["task"], []).append(row.id)
    journals = {task: Counter(_members(ids)) for (task,), ids in tenant.all("journal").items()}
    cuts = _text(tenant.one("meta", {}))
    for (task,), stayed in tenant.all("aside").items():
        journals.setdefault(task, Counter()).update(_members(stayed))
        if not _members(stayed) <= Counter(expected.get(task, [])):
            yield "I3", f"what stayed of the journal of {task} names jobs that have gone: {stayed}"
        if max(stayed.values()) >= int(cuts.get(f"cut:{task}", 0)):
            yield "I3", f"what stayed of the journal of {task} stands behind its cut: {stayed}"
    for task, ids in expected.items():
        for id_ in ids:
            times = journals.get(task, Counter[str]())[id_]
            if times != 1:
                yield "I3", f"job {id_} stands {times} times in the journal of {task}"


def _idempotency_keys_point_to_rows(tenant: Tenant) -> Said:
    held = {digest.decode(): id_.decode() for digest, id_ in tenant.one("unique", {}).items()}
    rows = {row.id: row for row in tenant.rows}
    for row in rows.values():
        unique, active = row.fields.get("unique"), row.fields.get("unique_mode") == "active"
        if unique and not (active and row.state in ENDED) and held.get(unique) != row.id:
            yield "I2", f"the idempotency key of {row.id} points to {held.get(unique)}"
    for digest, id_ in held.items():
        if id_ not in rows or rows[id_].fields.get("unique") != digest:
            yield "I2", f"an idempotency key points to {id_}, which does not carry it"
        elif rows[id_].fields.get("unique_mode") == "active" and rows[id_].state in ENDED:
            yield "I2", f"the idempotency key of {id_} is still taken after its end"


def _parts_of_a_job_go_with_it(tenant: Tenant) -> Said:
    rows = {row.id: row for row in tenant.rows}
    blobs = {(id_, _LONG[short]) for short, id_ in tenant.all("blob")}
    marks = {
        (row.id, name)
        for row in rows.values()
        for name in BLOBS
        if row.fields.get(name) == "" and not row.pieces(name)
    }
    yield from _same("layout", "long values", dict.fromkeys(blobs), dict.fromkeys(marks))
    for family in ("errors", "progress", "lines"):
        for (id_,) in tenant.all(family):
            if id_ not in rows:
                yield "I3", f"{family} of {id_}, which has no row"
            elif family != "errors" and not rows[id_].fields.get("background"):
                yield "I3", f"{family} of {id_}, which is not a background task"
    for (id_,), words in tenant.all("errors").items():
        for name in words:
            number, mark = _place_of_word(name)
            attempts = {attempt.number: attempt for attempt in rows[id_].attempts} if id_ in rows else {}
            if number not in attempts or (attempts[number].open and mark not in NOTES):
                yield "I14", f"{id_} has an error of attempt {name.decode()}, which did not end"


def _history_tells_of_every_hand(tenant: Tenant) -> Said:
    """I5: what raised the generation stands in the history, as long as that is whole."""
    rows = {row.id: row for row in tenant.rows}
    for (id_,), entries in tenant.all("history").items():
        if id_ not in rows:
            yield "I3", f"history of {id_}, which has no row"
        if len(entries) > HISTORY:
            yield "I5", f"the history of {id_} has {len(entries)} entries, over {HISTORY}"
    for row in rows.values():
        deeds = [entry.decode().split("\n", 4) for entry in tenant.all("history").get((row.id,), [])]
        revisions = [int(deed[0]) for deed in deeds]
        if revisions != sorted(set(revisions)) or (revisions and revisions[-1] > row.number("revision")):
            yield (
                "I5",
                f"{row.id} is at revision {row.number('revision')}, its history has revisions {revisions}",
            )
        odd = [deed[2] for deed in deeds if deed[2] not in BY_HAND]
        if odd:
            yield "I5", f"the history of {row.id} has verbs nobody knows: {odd}"
        rounds = 1 + sum(BY_HAND.get(deed[2], False) for deed in deeds)
        if len(deeds) < HISTORY and rounds != row.number("generation"):
            yield (
                "I5",
                f"{row.id} is in generation {row.number('generation')}, its history tells of {rounds}",
            )


def _place_of_word(name: bytes) -> tuple[int, str]:
    """Of which attempt a field of `errors` tells, and what: "" the error, "s" the stack, "q" and "p" its notes."""
    text = name.decode()
    digits = text.rstrip("sqp")
    return int(digits), text[len(digits) :]


def _groups_follow_from_rows(tenant: Tenant) -> Said:
    expected: dict[tuple[str, ...], dict[str, float]] = {}
    for row in tenant.rows:
        for group in _groups_of(tenant, row):
            expected.setdefault(group, {})[row.id] = float(row.fields["created"])
    found = {names: _scores(group) for names, group in tenant.all("group").items()}
    yield from _same("I3", "groups", found, expected)


def _groups_of(tenant: Tenant, row: Row) -> Iterator[tuple[str, str]]:
    for kind in ("instance", "node", "trace", "record"):
        if kind in row.fields:
            yield kind, tenant.long(row, kind)
    if "labels" in row.fields:
        for label in tenant.long(row, "labels").split("\n"):
            yield "label", label
    if "root" in row.fields:
        yield "trace", row.id


def _traces_have_their_root(tenant: Tenant) -> Said:
    """A job that others name as the beginning of their trace is found with them."""
    rows = {row.id: row for row in tenant.rows}
    for row in rows.values():
        root = rows.get(tenant.long(row, "trace")) if "trace" in row.fields else None
        if root and "trace" not in root.fields and "root" not in root.fields and _before(root, row):
            yield "I3", f"{row.id} belongs to the trace of {root.id}, which does not know"


def _before(one: Row, other: Row) -> bool:
    return one.number("created") < other.number("created")


def _paused_jobs_keep_their_time(tenant: Tenant) -> Said:
    for row in tenant.rows:
        remaining = row.fields.get("remaining")
        if (row.state is State.PAUSED) != (remaining is not None):
            yield "I3", f"{row.id} is {row.state} with {remaining} ms remaining"
        elif remaining is not None and int(remaining) < 0:
            yield "I3", f"{row.id} has {remaining} ms remaining"


def _jobs_follow_their_instance(tenant: Tenant) -> Said:
    """Once the walk is over, every job is where the flag wants it."""
    flags = _flags(tenant)
    for row in tenant.rows:
        flag = flags.get(tenant.long(row, "instance") if "instance" in row.fields else "", {})
        if "walk" in flag:
            continue
        said = flag.get("state")
        if said == "suspended" and "pausable" in row.fields and row.state in (State.PENDING, State.RUNNING):
            yield "I3", f"{row.id} is {row.state} and its instance is suspended"
        if said == "ended" and "cleared_on_end" in row.fields and row.state not in ENDED:
            yield "I3", f"{row.id} is {row.state} and its instance has ended"
        if said != "suspended" and row.state is State.PAUSED:
            yield "I3", f"{row.id} is paused and its instance is {said or 'normal'}"


def _the_reaper_visits_instances(tenant: Tenant) -> Said:
    """Else a walk whose driver died stands still, and the flag of an ended instance stays for ever."""
    flags = _flags(tenant)
    for name, flag in flags.items():
        if "state" not in flag and "walk" not in flag:
            yield "I3", f"instance {name} is normal and something is stored of it"
    wanted = {name for name, flag in flags.items() if "walk" in flag or flag.get("state") == "ended"}
    visits = _scores(tenant.one("instances", {}))
    yield from _same("I43", "visits to instances", dict.fromkeys(visits), dict.fromkeys(wanted))


def _flags(tenant: Tenant) -> dict[str, dict[str, str]]:
    return {name: _text(fields) for (name,), fields in tenant.all("instance").items()}


def _clusters_follow_from_rows(tenant: Tenant) -> Said:
    """A job that is dead or failed is in the cluster of its fingerprint, and each cluster has a place and a sample."""
    expected: dict[str, dict[str, float]] = {}
    for row in tenant.rows:
        if row.state in (State.DEAD, State.FAILED):
            fingerprint, finished = row.fields.get("fingerprint", "none"), row.fields.get("finished", 0)
            expected.setdefault(fingerprint, {})[row.id] = float(finished)
        elif "fingerprint" in row.fields:
            yield "I3", f"{row.id} is {row.state} and in a cluster"
    found = {fingerprint: _scores(members) for (fingerprint,), members in tenant.all("cluster").items()}
    yield from _same("I3", "failure clusters", found, expected)
    names = dict.fromkeys(expected)
    yield from _same("I3", "places of clusters", dict.fromkeys(_scores(tenant.one("clusters", {}))), names)
    yield from _same("I3", "samples of clusters", dict.fromkeys(_text(tenant.one("samples", {}))), names)
    seen = _text(tenant.one("samples", {}))
    for fingerprint, last in _scores(tenant.one("clusters", {})).items():
        times = expected.get(fingerprint, {}).values()
        first = int(seen.get(fingerprint, "0").partition("\n")[0])
        if times and not max(first, *times) <= last:
            yield (
                "I3",
                f"cluster {fingerprint} is said to be from {first} to {last}, its jobs: {sorted(times)}",
            )


def _notices_are_of_the_dead(tenant: Tenant) -> Said:
    """Where something is to be told, or was, something is dead."""
    notices = _text(tenant.one("notices", {}))
    if notices and not any(row.state is State.DEAD for row in tenant.rows):
        yield "I3", f"notices {sorted(notices)} stand, and nothing is dead"
    for group, said in notices.items():
        if not re.fullmatch(r"(-|\d+) \d+", said):
            yield "I3", f"notice {group} cannot be read: {said}"


def _business_rows_follow(tenant: Tenant) -> Said:
    """A task whose row is behind is looked at; a record leads to the task that was bound to it last."""
    bound = {row.id: row for row in tenant.rows if "binding" in row.fields}
    places = _scores(tenant.one("bound", {}))
    for place, id_ in _text(tenant.one("bound_to", {})).items():
        row = bound.pop(id_, None)
        record = f"{row.fields['binding']}|{tenant.long(row, 'record')}" if row else None
        if record != place:
            yield "I3", f"record {place} leads to {id_}, which is bound to {record}"
        elif row and id_ not in places and _written_revision(tenant, id_) != row.fields["revision"]:
            yield "I43", f"the business row of {id_} is behind, and nobody looks"
    for id_ in bound.keys() & places.keys():
        yield "I3", f"{id_} is looked at, and its record has a later task"
    if places and "due:@bindings" not in _text(tenant.one("meta", {})):
        yield "I43", f"business rows are behind, and no visit is asked for: {sorted(places)}"


def _written_revision(tenant: Tenant, id_: str) -> str | None:
    return _text(tenant.all("progress").get((id_,), {})).get("bind_rev")


def _batches_add_up(tenant: Tenant) -> Said:
    batches = {id_: _text(fields) for (id_,), fields in tenant.all("batch").items()}
    jobs, skips = tenant.all("batch_jobs"), tenant.all("batch_skips")
    for family, found in (("jobs", jobs), ("skipped jobs", skips)):
        for (id_,) in found:
            if id_ not in batches:
                yield "I3", f"{family} of batch {id_}, which is not on record"
    yield from _same(
        "I3", "batches", dict.fromkeys(_scores(tenant.one("batches", {}))), dict.fromkeys(batches)
    )
    running = {id_ for id_, batch in batches.items() if batch["state"] == "running"}
    work = _scores(tenant.one("batch_work", {}))
    yield from _same("I43", "running batches", dict.fromkeys(work), dict.fromkeys(running))
    for id_, batch in batches.items():
        done, total = int(batch["done"]), int(batch["jobs"])
        if total != len(jobs.get((id_,), [])):
            yield "I3", f"batch {id_} says it has {total} jobs, it has {len(jobs.get((id_,), []))}"
        if batch["state"] == "done" and done != total:
            yield "I3", f"batch {id_} is done with {done} of {total} jobs"
        by_code = Counter(code.decode() for code in skips.get((id_,), {}).values())
        said = {
            name.partition(":")[2]: int(count) for name, count in batch.items() if name.startswith("skipped:")
        }
        yield from _same("I3", f"skipped jobs of batch {id_}", said, dict(by_code))
        listed = {entry.decode().partition(" ")[0] for entry in jobs.get((id_,), [])[:done]}
        skipped = sum(job_id.decode() in listed for job_id in skips.get((id_,), {}))
        if int(batch["accepted"]) + skipped != done:
            yield "I3", f"batch {id_} has done {done}: {batch['accepted']} and {skipped} that it skipped"


def _progress_is_a_share(tenant: Tenant) -> Said:
    rows = {row.id: row for row in tenant.rows}
    for (id_,), found in tenant.all("progress").items():
        progress = {name.decode(): value.decode() for name, value in found.items()}
        done, total = int(progress.get("done", 0)), int(progress.get("total", 0)) or None
        if done < 0 or (total is not None and total < 0):
            yield "I34", f"progress of {id_} is {done} of {total}"
        if id_ in rows and ("since" in progress) != (rows[id_].state is State.RUNNING):
            runs = "runs" if "since" in progress else "stands"
            yield "I33", f"{id_} is {rows[id_].state} and its working time {runs}"


# -- named leases, schedules ------------------------------------------------------------------------------------------


def _named_leases_stand_by_expiry(tenant: Tenant) -> Said:
    expected = {name: float(lease[b"until"]) for (name,), lease in tenant.all("lease").items()}
    yield from _same("I3", "named leases", _scores(tenant.one("leases", {})), expected)
    for (name,), lease in tenant.all("lease").items():
        if int(lease[b"fence"]) > _clock(tenant):
            yield "I8", f"fence of lease {name} is ahead of the tenant clock"
    for (name,), wakes in tenant.all("handover").items():
        if len(wakes) > 1:
            yield "I3", f"{len(wakes)} wake-ups wait at lease {name}"


def _triggers_stand_by_next_fire(tenant: Tenant) -> Said:
    schedules = {job_key: _text(fields) for (job_key,), fields in tenant.all("schedule").items()}
    yield from _same(
        "I3",
        "names of schedules",
        dict.fromkeys(_scores(tenant.one("schedules", {}))),
        dict.fromkeys(schedules),
    )
    expected = {
        f"{name[5:]}:{job_key}": float(value)
        for job_key, fields in schedules.items()
        for name, value in fields.items()
        if name.startswith("next:") and "paused" not in fields
    }
    visits = _scores(tenant.one("triggers", {}))
    unfinished = {member for member in visits if member.startswith(":")}
    planned = {member: score for member, score in visits.items() if member not in unfinished}
    yield from _same("I3", "triggers", planned, expected)
    behind = {
        f":{name}"
        for (name,), members in tenant.all("planned_by").items()
        if min(members.values()) < int(tenant.all("calendar").get((name,), {}).get(b"revision", 0))
    }
    yield from _same("I3", "calendars to go on with", dict.fromkeys(unfinished), dict.fromkeys(behind))


def _triggers_stand_in_their_calendars(tenant: Tenant) -> Said:
    calendars = {name for (name,) in tenant.all("calendar")}
    names = dict.fromkeys(_scores(tenant.one("calendars", {})))
    yield from _same("I3", "names of calendars", names, dict.fromkeys(calendars))
    expected = {
        (fields[name].decode(), f"{name[9:].decode()}:{job_key}")
        for (job_key,), fields in tenant.all("schedule").items()
        for name in fields
        if name.startswith(b"calendar:")
    }
    found = {
        (name, member) for (name,), members in tenant.all("planned_by").items() for member in _scores(members)
    }
    yield from _same("I3", "triggers in calendars", dict.fromkeys(found), dict.fromkeys(expected))
    for name, member in expected:
        if name not in calendars:
            yield "I3", f"{member} stands in calendar {name}, which is not stored"


def _fires_are_recorded_once(tenant: Tenant) -> Said:
    spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for (_month, trigger, job_key), records in tenant.all("fires").items():
        for record in records:
            instant, outcome, _reason, job, _at, _scheduler, until, _count = record.decode().split(" ")
            last = int(instant) if until == "-" else int(until)
            spans.setdefault((trigger, job_key), []).append((int(instant), last))
            if outcome in FIRED and job != fire_id(tenant.name, job_key, trigger, int(instant)):
                yield "I22", f"fire {instant} of {trigger}:{job_key} names job {job}"
            if (outcome in FIRED) == (job == "-"):
                yield "I23", f"fire {instant} of {trigger}:{job_key} is {outcome} with job {job}"
    for (trigger, job_key), found in spans.items():
        for (_, end), (start, _) in zip(sorted(found), sorted(found)[1:], strict=False):
            if start <= end:
                yield "I22", f"records of {trigger}:{job_key} overlap at {start}"
        fields = _text(tenant.all("schedule").get((job_key,), {}))
        following = int(fields.get(f"next:{trigger}", 0))
        seen = _scores(tenant.one("observed", {})).get(f"{trigger}:{job_key}", 0)
        if following and max(following, seen) <= max(end for _, end in found):
            yield "I25", f"{trigger}:{job_key} is to fire again at {following}, which has its record"


def _unknown_tenants(index: Tenant, tenants: dict[str, Tenant]) -> Iterator[str]:
    known = {name.decode() for name in index.one("tenants", set())}
    for tenant in tenants.values():
        has_work = tenant.all("row") or tenant.all("schedule") or tenant.all("lease")
        if has_work and tenant.name not in known:
            yield f"I43 tenant {tenant.name}: the index does not know it, so no sweep finds its work"


_RULES: tuple[Callable[[Tenant], Said], ...] = (
    _rows_are_sound,
    _attempts_are_numbered,
    _budgets_hold,
    _the_holder_is_known,
    lines_follow_from_rows,
    keys_are_held_by_those_who_run,
    _sets_follow_from_rows,
    _counts_follow_from_rows,
    _figures_follow_from_rows,
    _minutes_agree_with_rows,
    _journals_cover_rows,
    _idempotency_keys_point_to_rows,
    _parts_of_a_job_go_with_it,
    _history_tells_of_every_hand,
    _groups_follow_from_rows,
    _traces_have_their_root,
    _paused_jobs_keep_their_time,
    _jobs_follow_their_instance,
    _the_reaper_visits_instances,
    _clusters_follow_from_rows,
    _batches_add_up,
    _notices_are_of_the_dead,
    _business_rows_follow,
    _progress_is_a_share,
    due_work_is_advertised,
    _named_leases_stand_by_expiry,
    _triggers_stand_by_next_fire,
    _triggers_stand_in_their_calendars,
    _fires_are_recorded_once,
    the_log_tells_of_fires,
    books_are_known,
)


# -- two looks at one job ---------------------------------------------------------------------------------------------


def _step(before: Row, after: Row) -> Said:
    """What one job may not do between two looks."""
    if after.number("generation") < before.number("generation"):
        yield "I8", f"the generation of {after.id} went back"
    if after.number("revision") < before.number("revision"):
        yield "I5", f"the revision of {after.id} went back"
    if after.state is not before.state and after.number("revision") == before.number("revision"):
        yield "I5", f"{after.id} went from {before.state} to {after.state} and its revision stands"
    if int(after.fields.get("fence", 0)) < int(before.fields.get("fence", 0)):
        yield "I8", f"the fence of {after.id} went back"
    if before.state is State.SUCCEEDED and after.state is not State.SUCCEEDED:
        yield "I4", f"{after.id} left succeeded for {after.state}"
    same_round = after.number("generation") == before.number("generation")
    if before.state in ENDED and after.state is not before.state and same_round:
        yield "I4", f"{after.id} left {before.state} for {after.state} in the same generation"


# -- small things -----------------------------------------------------------------------------------------------------


def _clock(tenant: Tenant) -> int:
    return int(tenant.one("meta", {}).get(b"clock", 0))


def _in_state(rows: list[Row], state: State) -> Counter[str]:
    return Counter(row.id for row in rows if row.state is state)


def _members(ids: Iterable[bytes]) -> Counter[str]:
    return Counter(id_.decode() for id_ in ids)


def _scores(zset: dict[bytes, float]) -> dict[str, float]:
    return {name.decode(): score for name, score in zset.items()}


def _text(fields: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode("utf-8", "surrogateescape") for name, value in fields.items()}
