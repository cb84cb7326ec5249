"""Any sequence of calls answers as the model says, and leaves a sound store after every one of them."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tenure.lease.instances import Instances
from tenure.lease.ledger import LEASE_MS, Ledger, NewJob, new_token
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, Outcome, SkipRest, Succeed
from tenure.scripts import Scripts
from tenure.scripts.errors import BadInput, InstanceEnded, KeyReused, StaleFence, StalePlan, WrongState
from tenure.scripts.states import Cause, State
from tenure.testing import START, Invariants, Server, dump, wipe

from .model import Instance, Job, Model

EXAMPLES = int(os.environ.get("TENURE_EXAMPLES", "0"))
"""How many runs of the machine, with other seeds each time; 0 is a few, the same each time."""

OUTCOMES: list[Outcome] = [
    Succeed(b"r"),
    Succeed(b"result" * 20),
    SkipRest("nothing to do"),
    NextChunk(b"cursor"),
    NextChunk(b"cursor" * 20, delay_ms=1_000),
    Fail("no luck"),
    Fail("no luck", delay_ms=30_000),
    Fail("no luck", Cause.REFUSED, 1),
    Fail("never", permanent=True),
    Lose("exit code -9"),
    GiveBack(),
    GiveBack(started=False),
]
WHICH = st.integers(0, 10**6)


class Machine(RuleBasedStateMachine):
    server: Server
    names = count()

    def __init__(self) -> None:
        super().__init__()
        self.namespace = f"m{os.getpid()}x{next(self.names)}"
        scripts = Scripts(self.server.redis, now=START)
        self.real = Ledgers(scripts, self.namespace).of("acme")
        self.model = Model(START)
        self.checker = Invariants()
        self.leases: list[tuple[str, int]] = []
        self.instances = [Instance()]

    @property
    def ledger(self) -> Ledger:
        return self.real.at(self.model.now)

    def teardown(self) -> None:
        wipe(self.server.redis, self.namespace)

    # -- what may happen ----------------------------------------------------------------------------------------------

    @rule(
        delay=st.sampled_from([0, 0, 0, 1, 5_000]),
        priority=st.sampled_from([5, 5, 0, 9]),
        args=st.sampled_from([b"", b"a", b"b" * 100]),
        key=st.sampled_from([None, None, "one", "two"]),
        mode=st.sampled_from(["kept", "active"]),
        start_by=st.sampled_from([None, None, None, 1, 40_000]),
        member=st.sampled_from([*5 * [None], (), ("pausable",), ("pausable", "cleared_on_end")]),
    )
    def enqueue(
        self,
        delay: int,
        priority: int,
        args: bytes,
        key: str | None,
        mode: str,
        start_by: int | None,
        member: tuple[str, ...] | None,
    ) -> None:
        fields = {"priority": str(priority)} if priority != 5 else {}
        if member is not None:
            fields |= {"instance": f"order-{len(self.instances)}"} | dict.fromkeys(member, "1")
        if start_by is not None:
            fields["start_by"] = f"+{delay + start_by}"
        job = NewJob("task", args, when=f"+{delay}", idempotency_key=key, unique_mode=mode, fields=fields)
        latest = None if start_by is None else self.model.now + delay + start_by
        expected = self.model.enqueue(
            Job(
                job.id,
                self.model.now + delay,
                latest,
                priority,
                args,
                key,
                mode,
                instance=None if member is None else self.instances[-1],
                pausable="pausable" in (member or ()),
                cleared="cleared_on_end" in (member or ()),
            )
        )
        try:
            answer = self.ledger.enqueue(job)
        except KeyReused:
            assert expected is None
        else:
            assert (answer.id, answer.created) == expected

    @rule(want=st.integers(1, 5), again=st.booleans())
    def claim(self, want: int, again: bool) -> None:
        call = self.ledger.claim_call("advance", "one", want, new_token())
        expected = self.model.claim(want)
        answer = self.ledger.scripts.run(call)
        if again:
            answer = self.ledger.scripts.run(call)
        assert [lease.id for lease in answer.leases] == expected
        for lease in answer.leases:
            self.model.leased(lease.id, lease.fence)
            assert lease.expires_at == self.model.jobs[lease.id].lease_until
            self.leases.append((lease.id, lease.fence))

    @precondition(lambda self: self.leases)
    @rule(which=WHICH, outcome=st.sampled_from(OUTCOMES), again=st.booleans())
    def settle(self, which: int, outcome: Outcome, again: bool) -> None:
        """Any lease that ever was: so most late outcomes come from holders that have lost theirs."""
        job_id, fence = self.leases[-1 - which % len(self.leases)]
        call = self.ledger.settle_call([(job_id, fence, outcome)])
        for _ in range(1 + again):
            accepted = self.model.settle(job_id, fence, outcome)
            (refused,), _news = self.ledger.scripts.run(call)
            assert refused is None if accepted else isinstance(refused, StaleFence)

    @precondition(lambda self: self.leases)
    @rule(which=WHICH)
    def renew(self, which: int) -> None:
        held = self.leases[-1 - which % len(self.leases)]
        expected = self.model.renew(*held)
        (answer,) = self.ledger.scripts.run(self.ledger.renew_call([held]))
        assert isinstance(answer, StaleFence) if expected is None else answer == expected

    @rule()
    def reap(self) -> None:
        assert {job_id for job_id, _ in self.ledger.reap()} == self.model.reap()

    @precondition(lambda self: self.model.jobs)
    @rule(which=WHICH, skip=st.booleans())
    def cancel(self, which: int, skip: bool) -> None:
        job_id = self.job(which)
        expected = self.model.cancel(job_id)
        try:
            answer = self.ledger.skip(job_id, "why") if skip else self.ledger.cancel(job_id, "why")
            assert answer == expected
        except WrongState:
            assert expected is None

    @precondition(lambda self: self.model.jobs)
    @rule(
        which=WHICH,
        args=st.sampled_from([None, None, b"", b"a", b"c" * 100]),
        seen=st.sampled_from([None, None, 0, -1]),
        token=st.sampled_from([None, "one", "two"]),
        again=st.booleans(),
    )
    def retry(self, which: int, args: bytes | None, seen: int | None, token: str | None, again: bool) -> None:
        job_id = self.job(which)
        generation = None if seen is None else self.model.jobs[job_id].generation + seen
        for _ in range(1 + again):
            expected = self.model.retry(job_id, args, generation, token)
            try:
                answer = self.ledger.retry(
                    job_id, args=args, generation=generation, token=token, reason="why"
                )
                assert answer == expected
            except (WrongState, StalePlan, KeyReused, InstanceEnded):
                assert expected is None

    @precondition(lambda self: self.model.jobs)
    @rule(
        which=WHICH,
        delay=st.sampled_from([None, 0, 1, 5_000]),
        priority=st.sampled_from([None, 0, 5, 9]),
        again=st.booleans(),
    )
    def reschedule(self, which: int, delay: int | None, priority: int | None, again: bool) -> None:
        job_id = self.job(which)
        when = None if delay is None else f"+{delay}"
        for _ in range(1 + again):
            expected = self.model.reschedule(job_id, delay, priority)
            try:
                assert self.ledger.reschedule(job_id, when=when, priority=priority) == expected
            except (WrongState, BadInput):
                assert expected is None

    @precondition(lambda self: any(job.instance for job in self.model.jobs.values()))
    @rule(
        which=WHICH,
        flag=st.sampled_from(["suspended", "suspended", "", "", "ended"]),
        step=st.integers(1, 3),
        again=st.booleans(),
    )
    def say(self, which: int, flag: str, step: int, again: bool) -> None:
        """Of the instance that jobs are made for, mostly; once it has ended, there is another one."""
        at = max(0, len(self.instances) - 1 - which % 3)
        instances = Instances(self.ledger, step=step)
        word = {"suspended": instances.pause, "": instances.resume, "ended": instances.end}[flag]
        for _ in range(1 + again):
            expected = self.model.say(self.instances[at], flag)
            try:
                word(f"order-{at + 1}")
                assert expected
            except InstanceEnded:
                assert not expected
        if flag == "ended" and at == len(self.instances) - 1:
            self.instances.append(Instance())

    def job(self, which: int) -> str:
        return list(self.model.jobs)[-1 - which % len(self.model.jobs)]

    @rule(by=st.sampled_from([0, 1, 1_000, 30_000, LEASE_MS - 1, LEASE_MS, 10 * LEASE_MS, -5_000]))
    def pass_time(self, by: int) -> None:
        """The server's clock; it may step back, too."""
        self.model.now += by

    @rule()
    def lose_the_library(self) -> None:
        self.server.redis.execute_command("FUNCTION FLUSH")

    # -- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def the_store_is_sound(self) -> None:
        self.checker.check(dump(self.server.redis, self.namespace))

    @invariant()
    def every_job_is_as_the_model_has_it(self) -> None:
        found = {view.id: view for view in self.ledger.get_many(list(self.model.jobs))}
        for job in self.model.jobs.values():
            view = found[job.id]
            assert shown(view) == expected(job)


def shown(view: Any) -> dict[str, object]:
    return {
        "state": view.status,
        "dead_reason": view.dead_reason if view.status in (State.DEAD, State.FAILED) else None,
        "generation": view.generation,
        "failures": view.failures,
        "losses": view.losses,
        "fence": view.fence,
        "attempts": [(one.fence, one.status, one.cause, one.chunks) for one in view.attempts],
        "priority": view.priority,
        "edit": view.edit,
        "chunk": view.chunk,
        "run_at": view.run_at,
        "start_by": view.start_by,
        "remaining": view.remaining_ms,
        "values": (view.args, view.result, view.cursor),
        "lease_until": view.lease_until,
    }


def expected(job: Job) -> dict[str, object]:
    return {
        "state": job.state,
        "dead_reason": job.dead_reason if job.state in (State.DEAD, State.FAILED) else None,
        "generation": job.generation,
        "failures": job.failures,
        "losses": job.losses,
        "fence": job.fence,
        "attempts": [(one.fence, one.status, one.cause, one.chunks) for one in job.attempts],
        "priority": job.priority,
        "edit": job.edit,
        "chunk": job.chunk,
        "run_at": job.run_at,
        "start_by": job.start_by,
        "remaining": job.remaining,
        "values": (job.args, job.result, job.cursor),
        "lease_until": job.lease_until if job.state == "running" else None,
    }


def play(server: Server, phases: tuple[Phase, ...] = (Phase.generate, Phase.shrink)) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        type("OnThisServer", (Machine,), {"server": server}),
        settings=machine_settings(phases),
    )


def machine_settings(phases: tuple[Phase, ...]) -> settings:
    return settings(
        max_examples=EXAMPLES or 40,
        stateful_step_count=50,
        phases=phases,
        deadline=None,
        derandomize=not EXAMPLES,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def test_any_sequence_of_calls_answers_as_the_model_says(tenure_server: Server) -> None:
    play(tenure_server)


def test_the_machine_notices_a_rule_that_is_not_kept(
    tenure_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told that priorities do not count, it finds that they do."""

    def careless(self: Model, want: int) -> list[str]:
        return [job.id for job in sorted(self.due(), key=lambda job: (job.run_at, job.id))][:want]

    monkeypatch.setattr(Model, "claim", careless)
    with pytest.raises(AssertionError):
        play(tenure_server, (Phase.generate,))
