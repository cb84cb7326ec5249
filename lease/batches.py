"""One verb for many jobs: written down, begun on a person's word, and then done whoever dies on the way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ..scripts import Call
from ..scripts.errors import BadInput, NotFound
from ..scripts.loader import Arg, texts
from . import views
from .batch_work import work_off
from .ids import is_id, new_id
from .jobs import REAP, News
from .ledger import Ledger
from .who import check_word

MOST_JOBS = 500
FASTEST, RATE = 200, 20
"""Jobs that are due in a second: at most, and by default."""
MOST_BATCHES = 100


class BatchState(StrEnum):
    PLANNED = "planned"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A job of a batch. `outcome` is `accepted` or `skipped`, None before its turn; `skipped` is the code of why."""

    id: str
    outcome: str | None
    skipped: str | None


@dataclass(frozen=True, slots=True)
class Batch:
    """One verb for many jobs. `success` counts the jobs it was done to: retries that were begun, not how they ended."""

    tenant: str
    id: str
    verb: str
    deed: str
    state: BatchState
    conditions: Mapping[str, Any] | None
    """How its jobs were chosen; None: by their ids."""
    total: int
    done: int
    """How many it has come to: success and skipped ones."""
    success: int
    skipped: int
    reasons: Mapping[str, int]
    """How many were skipped by each code."""
    rate: int | None
    by: str | None
    reason: str
    made_at: int
    begun_at: int | None
    finished_at: int | None
    jobs: tuple[BatchJob, ...]
    """In the order in which they are done, those known to be skipped last; empty in lists."""


class Batches:
    """Verbs of batches. Sent again under the same id, each changes nothing."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def retry(
        self,
        ids: Sequence[str],
        *,
        rate: int = RATE,
        reason: str = "",
        by: str = "",
        batch_id: str | None = None,
    ) -> Batch:
        """Begin a new round of each, at most `rate` a second. One of which an outcome is unknown is skipped."""
        return self._all("retry", ids, rate, reason, by, batch_id)

    def skip(
        self, ids: Sequence[str], *, reason: str = "", by: str = "", batch_id: str | None = None
    ) -> Batch:
        """Cancel each because it need not be done any more."""
        return self._all("skip", ids, RATE, reason, by, batch_id)

    def _all(
        self, verb: str, ids: Sequence[str], rate: int, reason: str, by: str, batch_id: str | None
    ) -> Batch:
        check_batch(ids)
        check_rate(rate)
        check_word(by, reason)
        batch_id = self.plan(
            verb, verb, [(job_id, None, "") for job_id in dict.fromkeys(ids)], batch_id=batch_id
        )
        return self.run(batch_id, rate=rate, reason=reason, by=by)

    def plan(
        self,
        verb: str,
        deed: str,
        jobs: Iterable[tuple[str, int | None, str]],
        *,
        conditions: Mapping[str, Any] | None = None,
        batch_id: str | None = None,
    ) -> str:
        """Write a batch down: jobs with the generation they were seen in (None: as they are now), and the code of why
        one is skipped, if it is. Answers its id.
        """
        batch_id = new_id() if batch_id is None else check_batch_id(batch_id)
        args: dict[str, Arg] = {
            "id": batch_id,
            "verb": verb,
            "deed": deed,
            "conditions": "" if conditions is None else json.dumps(conditions),
        }
        rest: list[Arg] = []
        for job_id, generation, code in jobs:
            rest += (job_id, "" if generation is None else generation, code)
        self._ledger.scripts.run(Call("batch_plan", self._ledger.keys.home, args, tuple, rest))
        return batch_id

    def run(self, batch_id: str, *, rate: int = RATE, reason: str = "", by: str = "") -> Batch:
        """Begin a batch and do it to its end. One that was begun before keeps who began it, why, and its rate.

        Raises NotFound.
        """
        self.begin(batch_id, rate=rate, reason=reason, by=by)
        work_off(self._ledger, batch_id)
        return self.get(batch_id)

    def begin(self, batch_id: str, *, rate: int = RATE, reason: str = "", by: str = "") -> None:
        """Begin a batch and do nothing of it yet: a reaper will, if nobody else does. Raises NotFound."""
        check_batch_id(batch_id)
        check_rate(rate)
        check_word(by, reason)
        args: dict[str, Arg] = {"id": batch_id, "rate": rate, "by": by, "reason": reason}
        call: Call[Any] = Call("batch_begin", self._ledger.keys.home, args, tuple)
        try:
            _began, reap = self._ledger.scripts.run(call)
        except NotFound:
            raise self._not_found(batch_id) from None
        self._ledger.index.put([News(self._ledger.tenant, REAP, *map(int, reap))] if reap else [])

    def get(self, batch_id: str) -> Batch:
        """One batch with its jobs. Raises NotFound."""
        found = self._read(batch_id, 1) if is_id(batch_id) else []
        if not found:
            raise self._not_found(batch_id)
        return found[0]

    def newest(self, limit: int = MOST_BATCHES) -> Sequence[Batch]:
        """The newest batches, also those that were only planned; the newest 100 are kept."""
        return self._read("", limit)

    def _read(self, batch_id: str, limit: int) -> list[Batch]:
        args: dict[str, Arg] = {"id": batch_id, "limit": limit}
        return self._ledger.scripts.run(Call("batch_read", self._ledger.keys.home, args, self._batches))

    def _batches(self, reply: Any) -> list[Batch]:
        return [_batch(self._ledger.tenant, *one) for one in reply]

    def _not_found(self, batch_id: str) -> NotFound:
        return NotFound(
            f"batch {batch_id!r:.40} is not on record in tenant {self._ledger.tenant}: the newest 100 are kept",
            hint="make a preview again; or tenure replay list",
        )


def check_batch(ids: Sequence[str]) -> None:
    """Refuse what is no list of 1 to 500 ids of jobs."""
    if not 1 <= len(ids) <= MOST_JOBS:
        raise BadInput(
            f"{len(ids)} ids are given, a batch has 1 to {MOST_JOBS}",
            hint="send more of them as further batches; replay takes conditions instead of ids",
        )
    for job_id in ids:
        if not isinstance(job_id, str) or not is_id(job_id):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"{job_id!r:.60} is not the id of a job", hint="tenure jobs list")


def check_batch_id(batch_id: str) -> str:
    """Return `batch_id` if it has the form of an id, else refuse it."""
    if not isinstance(batch_id, str) or not is_id(batch_id):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"{batch_id!r:.60} is not the id of a batch", hint="tenure replay list")
    return batch_id


def check_rate(rate: int) -> None:
    """Refuse what is no number of jobs a second."""
    if isinstance(rate, bool) or not isinstance(rate, int) or not 1 <= rate <= FASTEST:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"rate {rate!r:.60} is out of range: 1 to {FASTEST} jobs a second", hint=f"the default is {RATE}"
        )


def _batch(tenant: str, id_: bytes, flat: list[Any], jobs: list[Any], skips: list[Any]) -> Batch:
    said = dict(views.pairs(texts(flat)))
    reasons = {
        name.partition(":")[2]: int(count) for name, count in said.items() if name.startswith("skipped:")
    }
    skipped = sum(reasons.values())
    codes = dict(views.pairs(texts(skips)))
    listed = [entry.partition(" ")[0] for entry in texts(jobs)]
    known = [job_id for job_id in codes if job_id not in set(listed)]
    done, success = int(said["done"]), int(said["accepted"])
    turned = {*listed[:done], *known}
    return Batch(
        tenant=tenant,
        id=id_.decode(),
        verb=said["verb"],
        deed=said["deed"],
        state=BatchState(said["state"]),
        conditions=json.loads(said["conditions"]) if said["conditions"] else None,
        total=int(said["jobs"]) - (done - success) + skipped,
        done=success + skipped,
        success=success,
        skipped=skipped,
        reasons=reasons,
        rate=int(said["rate"]) if "rate" in said else None,
        by=said.get("by") or None,
        reason=said.get("reason", ""),
        made_at=int(said["made"]),
        begun_at=int(said["begun"]) if "begun" in said else None,
        finished_at=int(said["finished"]) if "finished" in said else None,
        jobs=tuple(_job(job_id, job_id in turned, codes.get(job_id)) for job_id in [*listed, *known]),
    )


def _job(job_id: str, turned: bool, code: str | None) -> BatchJob:
    return BatchJob(job_id, "skipped" if code else "accepted" if turned else None, code)
