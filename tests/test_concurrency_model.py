"""Any sequence of calls on jobs with concurrency keys, in several pools, leases whom the model says, never too many."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from tenure.lease.ledger import NewJob, new_token
from tenure.lease.outcome import Stopped
from tenure.scripts.states import State
from tenure.testing import START, Server

from .keyed_model import KeyedJob, KeyedModel
from .test_ledger_model import WHICH, Machine, machine_settings

POOLS = ["advance", "outbound"]
KEYS = [None, "a", "a", "b", "c" * 100]


class KeyedMachine(Machine):
    model: KeyedModel

    def __init__(self) -> None:
        super().__init__()
        self.model = KeyedModel(START)

    @rule(
        delay=st.sampled_from([0, 0, 0, 1, 5_000]),
        priority=st.sampled_from([5, 5, 0, 9]),
        key=st.sampled_from(KEYS),
        limit=st.sampled_from([1, 1, 2, 3]),
        pool=st.sampled_from(POOLS),
        many=st.sampled_from([1, 1, 3]),
    )
    def enqueue(  # type: ignore[override]
        self, delay: int, priority: int, key: str | None, limit: int, pool: str, many: int
    ) -> None:
        fields: dict[str, Any] = {"priority": str(priority)}
        if key is not None:
            fields |= {"concurrency_key": key, "concurrency_limit": str(limit)}
        jobs = [NewJob("task", pool=pool, when=f"+{delay}", fields=fields) for _ in range(many)]
        self.ledger.enqueue_many(jobs)
        for job in jobs:
            self.model.add(
                KeyedJob(job.id, self.model.now + delay, priority=priority, pool=pool, needs=key, limit=limit)
            )

    @rule(want=st.integers(1, 5), pool=st.sampled_from(POOLS), again=st.booleans())
    def claim(self, want: int, pool: str, again: bool) -> None:  # type: ignore[override]
        call = self.ledger.claim_call(pool, "one", want, new_token())
        expected = self.model.take(pool, want)
        answer = self.ledger.scripts.run(call)
        if again:
            answer = self.ledger.scripts.run(call)
        assert [lease.id for lease in answer.leases] == expected
        for lease in answer.leases:
            assert lease.keyed == (self.model.jobs[lease.id].needs is not None)  # type: ignore[attr-defined]
            self.model.leased(lease.id, lease.fence)
            self.leases.append((lease.id, lease.fence))

    @rule(key=st.sampled_from(KEYS), want=st.integers(1, 3), pool=st.sampled_from(POOLS))
    def enqueue_and_claim(self, key: str | None, want: int, pool: str) -> None:
        """Both at once, since of many rules each has its turn seldom, and the others stand on these two."""
        self.enqueue(delay=0, priority=5, key=key, limit=1, pool=pool, many=3)
        self.claim(want=want, pool=pool, again=False)

    @precondition(lambda self: self.leases)
    @rule(which=WHICH, again=st.booleans())
    def stop(self, which: int, again: bool) -> None:
        """Whoever says so: one whose job was taken from it, one that runs on, or one that was heard long ago."""
        job_id, fence = self.leases[-1 - which % len(self.leases)]
        self.model.stopped(fence)
        for _ in range(1 + again):
            (refused,), _news = self.ledger.scripts.run(self.ledger.settle_call([(job_id, fence, Stopped())]))
            assert refused is None

    @precondition(lambda self: self.model.held("a"))
    @rule(which=WHICH)
    def cancel_a_holder(self, which: int) -> None:
        """As `cancel`, of one that runs: what it takes to have a holder that lingers."""
        running = [job.id for job in self.model.keyed if job.state is State.RUNNING]
        if running:
            job_id = running[which % len(running)]
            assert self.ledger.cancel(job_id) == self.model.cancel(job_id)

    @invariant()
    def no_key_is_held_by_more_than_were_let_in(self) -> None:
        """A limit that was lowered lets the holders finish; else nobody is over it."""
        for key, limit in self.model.limits.items():
            assert self.model.held(key) <= max(limit, 3)


def play(server: Server, phases: tuple[Phase, ...] = (Phase.generate, Phase.shrink)) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        type("OnThisServer", (KeyedMachine,), {"server": server}), settings=machine_settings(phases)
    )


def test_any_sequence_of_calls_leases_whom_the_model_says(tenure_server: Server) -> None:
    play(tenure_server)


def test_the_machine_notices_a_key_that_is_not_kept(
    tenure_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told that a key has room for one more, it finds that it has not."""

    def careless(self: KeyedModel, job: KeyedJob) -> bool:
        return job.needs is None or self.held(job.needs) <= self.limits[job.needs]

    monkeypatch.setattr(KeyedModel, "has_room", careless)
    with pytest.raises(AssertionError):
        play(tenure_server, (Phase.generate,))
