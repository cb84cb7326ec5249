"""Instances: suspended, resumed, ended. The flag is the truth for every operation; a walk brings the jobs after it.

The contract's row "instance" of the rules, "canceled, paused by a person" of the attempts, and the state `paused`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tenure.lease.instance_view import InstanceState
from tenure.lease.instances import Instances
from tenure.lease.jobs import REAP, Lease
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, Outcome, SkipRest, Stopped, Succeed
from tenure.lease.walk import STEP, go_on
from tenure.lease.who import BY_LIMIT
from tenure.scripts.errors import BadInput, InstanceEnded, StaleFence
from tenure.scripts.keys import parse, wake_channel
from tenure.scripts.states import State
from tenure.testing import START, Died, Faults

from .given import PAUSABLE, At, Store, claim, claimed_ids, running, view
from .listener import Listener

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
BAND = 1 << 42
"""The latest due time there can be, in epoch ms, is one less."""
INSTANCE = "order-7"
CLEARED = {"instance": INSTANCE, "cleared_on_end": "1"}
BOTH = {**PAUSABLE, **CLEARED}


def made(ledger: Ledger, fields: dict[str, str] = PAUSABLE, **job: Any) -> str:
    return ledger.enqueue(NewJob("report", fields=fields, **job)).id


def states(ledger: Ledger, *ids: str) -> list[str]:
    return [job.status for job in ledger.get_many(ids)]


def set_before_the_walk(ledger: Ledger, flag: str) -> None:
    """Set the flag; its walk has come no further than to a job that was made for it."""
    made(ledger.at(START - 1), {"instance": INSTANCE}, when="+999999999")
    Instances(ledger, step=1).begin(INSTANCE, flag, "stock count", "ada")


# -- one node of it ---------------------------------------------------------------------------------------------------

LONG_NODE = "a node with a long name " * 4


@pytest.mark.parametrize("node", ["pack", LONG_NODE])
def test_a_node_is_as_its_own_jobs_are(ledger: Ledger, node: str) -> None:
    """Its job is the newest that has not ended, else the newest."""
    of_node = {"instance": INSTANCE, "node": node}
    old = made(ledger, of_node, when=START + 9)
    newest = made(ledger.at(START + 1), of_node, when=START + 5)
    done = made(ledger.at(START + 2), of_node)
    elsewhere = made(ledger.at(START + 3), {"instance": INSTANCE, "node": "send"})
    nowhere = made(ledger.at(START + 4), {"instance": INSTANCE})
    instances = Instances(ledger)
    ledger.cancel(done)

    found = instances.get(INSTANCE, node)
    assert (found.states, found.job) == ({State.PENDING: 2, State.CANCELED: 1}, newest)
    assert (found.jobs, found.next_due) == (5, START + 5)
    ledger.cancel(newest)
    assert instances.get(INSTANCE, node).job == old
    ledger.cancel(old)
    ended = instances.get(INSTANCE, node)
    assert (ended.states, ended.job, ended.next_due) == ({State.CANCELED: 3}, done, None)
    assert instances.get(INSTANCE, "send").job == elsewhere
    assert instances.get(INSTANCE).job == nowhere
    assert (instances.get(INSTANCE, "other").job, instances.get("order-8").job) == (None, None)


def test_a_job_that_has_gone_belongs_to_no_node_any_more(ledger: Ledger, store: Store) -> None:
    only = made(ledger, {"instance": INSTANCE})
    group = ledger.keys("group", kind="instance", value=INSTANCE)
    store.redis.zadd(group, {"01J00000000000000000000000": START + 1})

    found = Instances(ledger).get(INSTANCE)

    store.redis.zrem(group, "01J00000000000000000000000")
    assert (found.job, found.states) == (only, {State.PENDING: 1})


# -- suspended and resumed --------------------------------------------------------------------------------------------


def test_a_pending_job_keeps_the_time_it_has_left(ledger: Ledger, at: At) -> None:
    job = made(ledger, when="+60000")

    Instances(at(START + 20_000)).pause(INSTANCE)
    halfway = ledger.get(job)
    Instances(at(START + HOUR)).resume(INSTANCE)

    resumed = ledger.get(job)
    assert (halfway.status, halfway.remaining_ms) == ("paused", 40_000)
    assert (resumed.status, resumed.run_at, resumed.remaining_ms) == ("pending", START + HOUR + 40_000, None)
    assert claimed_ids(at(START + HOUR + 39_999), 1) == []
    assert claimed_ids(at(START + HOUR + 40_000), 1) == [job]


def test_what_was_due_is_due_again_at_once(ledger: Ledger, at: At) -> None:
    job = made(ledger)

    Instances(at(START + MINUTE)).pause(INSTANCE)
    assert ledger.get(job).remaining_ms == 0
    Instances(at(START + HOUR)).resume(INSTANCE)

    assert claimed_ids(at(START + HOUR), 1) == [job]


def test_a_running_job_loses_its_right_at_once_and_pauses_with_nothing_left(
    ledger: Ledger, at: At, store: Store
) -> None:
    """The row "canceled, paused by a person": attempt canceled(`paused`), nothing of the budget."""
    lease = running(ledger, fields={**PAUSABLE, "background": "1"})

    later = at(START + 500)
    Instances(later).pause(INSTANCE)

    found = view(ledger, lease)
    (attempt,) = found.attempts
    assert (found.status, found.remaining_ms, found.failures, found.losses) == ("paused", 0, 0, 0)
    assert (attempt.status, attempt.cause, attempt.ended_at) == ("canceled", "paused", START + 500)
    with store.unchanged():
        assert isinstance(later.renew([lease])[0], StaleFence)
        for outcome in (Succeed(b"late"), NextChunk(b"late"), Fail("late"), GiveBack()):
            with pytest.raises(StaleFence, match="is paused under fence"):
                later.settle(lease, outcome)
        with pytest.raises(StaleFence):
            later.report(lease, cursor=b"late", done=9)


def test_a_clock_that_steps_back_leaves_a_running_job_nothing(ledger: Ledger, at: At) -> None:
    lease = running(ledger, fields=PAUSABLE)

    Instances(at(START - 5_000)).pause(INSTANCE)

    assert view(ledger, lease).remaining_ms == 0


def test_a_due_time_moves_no_further_than_a_due_time_can_be(ledger: Ledger, at: At) -> None:
    """Past it the job would stand in the queue of the next priority."""
    job = made(ledger, when=BAND - 1)
    Instances(ledger).pause(INSTANCE)

    Instances(at(START + HOUR)).resume(INSTANCE)

    assert ledger.get(job).run_at == BAND - 1


def test_its_worker_is_told_to_stop(ledger: Ledger) -> None:
    lease = running(ledger, fields=PAUSABLE)
    listener = Listener(ledger.scripts.redis, wake_channel(ledger.keys.namespace))

    Instances(ledger).pause(INSTANCE)

    assert f"stop advance acme {lease.id} {lease.fence} paused" in listener.heard()
    listener.line.close()


def test_jobs_of_tasks_that_are_not_pausable_go_on(ledger: Ledger) -> None:
    held = running(ledger, fields={"instance": INSTANCE})
    waiting = made(ledger, {"instance": INSTANCE})
    elsewhere = made(ledger, {"instance": "order-8", "pausable": "1"})
    alone = made(ledger, {"pausable": "1"})

    Instances(ledger).pause(INSTANCE)

    ledger.settle(held, Succeed())
    assert sorted(claimed_ids(ledger, 5)) == sorted([waiting, elsewhere, alone])


def test_a_job_between_chunks_goes_on_from_its_checkpoint_in_a_new_attempt(ledger: Ledger, at: At) -> None:
    lease = running(ledger, fields={**PAUSABLE, "background": "1"})
    ledger.settle(lease, NextChunk(b"after 10", done=10, total=40, delay_ms=MINUTE))

    Instances(ledger).pause(INSTANCE)
    between = view(ledger, lease)
    Instances(at(START + HOUR)).resume(INSTANCE)
    again = claim(at(START + HOUR + MINUTE))

    assert (between.status, between.remaining_ms) == ("paused", MINUTE)
    assert [(one.status, one.cause, one.chunks) for one in between.attempts] == [("canceled", "paused", 1)]
    assert (again.attempt, again.chunk, again.cursor, again.failures) == (2, 1, b"after 10", 0)
    assert view(ledger, again).progress.done == 10  # type: ignore[union-attr]


def test_each_pause_and_each_resume_is_a_round(ledger: Ledger) -> None:
    job = made(ledger)

    seen = []
    for word in (Instances(ledger).pause, Instances(ledger).resume, Instances(ledger).pause):
        word(INSTANCE, "stock count", "ada")
        seen.append(ledger.get(job).generation)

    assert seen == [2, 3, 4]
    history = ledger.get(job).history
    assert [(deed.verb, deed.by, deed.reason) for deed in history] == [
        (verb, "ada", "stock count") for verb in ("pause", "resume", "pause")
    ]


def test_a_paused_job_can_be_canceled_or_skipped(ledger: Ledger) -> None:
    canceled, skipped = made(ledger), made(ledger)
    Instances(ledger).pause(INSTANCE)

    ledger.cancel(canceled)
    ledger.skip(skipped)
    Instances(ledger).resume(INSTANCE)

    assert states(ledger, canceled, skipped) == ["canceled", "canceled"]


def test_a_job_that_is_made_under_a_suspended_instance_is_paused_with_its_delay(
    ledger: Ledger, at: At
) -> None:
    Instances(ledger).pause(INSTANCE)

    job = made(ledger, when="+60000")
    other = made(ledger, {"instance": INSTANCE})
    found = ledger.get(job)
    Instances(at(START + HOUR)).resume(INSTANCE)

    assert (found.status, found.remaining_ms, found.generation, found.history) == ("paused", MINUTE, 1, ())
    assert ledger.get(other).status == "pending"
    assert ledger.get(job).run_at == START + HOUR + MINUTE


def test_a_paused_job_does_not_expire_until_it_is_resumed(ledger: Ledger, at: At) -> None:
    job = made(ledger, {**PAUSABLE, "start_by": "+60000"}, when="+1000")
    late = made(ledger, {**PAUSABLE, "start_by": "+60000"}, when="+1000")
    Instances(ledger).pause(INSTANCE)
    never = made(ledger, {**PAUSABLE, "start_by": "+60000"}, when="+1000")

    assert at(START + MINUTE - 1).reap() == []
    Instances(at(START + 30_000)).resume(INSTANCE)
    assert sorted(claimed_ids(at(START + 31_000), 2)) == sorted([job, late, never])[:2]

    assert [state for _, state in at(START + MINUTE).reap()] == ["dead"]


def test_a_retry_under_a_suspended_instance_begins_a_paused_round(ledger: Ledger, at: At) -> None:
    lease = running(ledger, fields=PAUSABLE)
    ledger.settle(lease, Fail("broken", permanent=True))
    Instances(ledger).pause(INSTANCE)

    for _ in range(2):
        assert ledger.retry(lease.id, when="+5000", token="once") == 2

    found = view(ledger, lease)
    assert (found.status, found.remaining_ms, found.generation) == ("paused", 5_000, 2)
    assert [deed.verb for deed in found.history] == ["retry"]
    Instances(at(START + HOUR)).resume(INSTANCE)
    assert claim(at(START + HOUR + 5_000)).id == lease.id


@pytest.mark.parametrize("word", ["pause", "resume", "end"])
def test_the_same_word_again_changes_nothing(ledger: Ledger, at: At, store: Store, word: str) -> None:
    jobs = [made(ledger, BOTH), made(ledger), made(ledger, CLEARED)]
    if word == "resume":
        Instances(ledger).pause(INSTANCE)
    getattr(Instances(ledger), word)(INSTANCE, "stock count", "ada")
    before = [ledger.get(job) for job in jobs]

    with store.unchanged():
        getattr(Instances(ledger), word)(INSTANCE, "another reason", "bob")

    assert [ledger.get(job) for job in jobs] == before


def test_an_instance_says_how_it_stands(ledger: Ledger, at: At) -> None:
    made(ledger, when="+60000")
    made(ledger, {"instance": INSTANCE}, when="+5000")
    running(ledger, fields={"instance": INSTANCE, "priority": "0"})

    normal = Instances(ledger).get(INSTANCE)
    suspended = Instances(at(START + 1000)).pause(INSTANCE, "stock count", "ada")

    assert (normal.flag.state, normal.flag.since, normal.jobs, normal.next_due) == (
        "normal",
        None,
        3,
        START + 5000,
    )
    assert normal.states == {State.PENDING: 2, State.RUNNING: 1}
    flag = suspended.flag
    assert (flag.state, flag.since, flag.by, flag.reason) == ("suspended", START + 1000, "ada", "stock count")
    assert not flag.walking
    assert suspended.states == {State.PENDING: 1, State.RUNNING: 1, State.PAUSED: 1}
    assert Instances(ledger).get("nobody's").states == {}


@pytest.mark.parametrize("name", ["x", "a:b{c}*", "Auftrag ü " * 12, "-1", "g:instance"])
def test_any_text_names_an_instance(ledger: Ledger, name: str) -> None:
    job = made(ledger, {"instance": name, "pausable": "1"})

    Instances(ledger).pause(name)
    assert ledger.get(job).status == "paused"
    Instances(ledger).end(name)

    assert ledger.get(job).status == "pending"
    assert Instances(ledger).get(name).flag.state == "ended"


@pytest.mark.parametrize("name", ["", "x" * 201, None, 7, "\ud800", "a\nb"])
def test_what_cannot_name_an_instance_is_refused(ledger: Ledger, store: Store, name: Any) -> None:
    with store.unchanged():
        for verb in ("pause", "resume", "end", "get"):
            with pytest.raises(BadInput, match="instance"):
                getattr(Instances(ledger), verb)(name)
        with pytest.raises(BadInput, match="by"):
            Instances(ledger).pause(INSTANCE, by="x" * (BY_LIMIT + 1))


# -- ended ------------------------------------------------------------------------------------------------------------


def test_the_end_cancels_what_is_cleared_and_lets_the_rest_go_on(ledger: Ledger, at: At) -> None:
    held = running(ledger, fields=CLEARED)
    pending, other = made(ledger, CLEARED), made(ledger)
    Instances(ledger).pause(INSTANCE)
    paused = made(ledger, BOTH)

    Instances(at(START + MINUTE)).end(INSTANCE, "the customer withdrew", "ada")

    assert states(ledger, held.id, pending, paused, other) == ["canceled", "canceled", "canceled", "pending"]
    found = view(ledger, held)
    assert [(one.status, one.cause) for one in found.attempts] == [("canceled", "canceled")]
    assert found.reason == "instance order-7 has ended: the customer withdrew"
    with pytest.raises(StaleFence, match="is canceled"):
        ledger.settle(held, Succeed())


def test_what_had_ended_before_stays_as_it_ended(ledger: Ledger) -> None:
    succeeded, broken = running(ledger, fields=CLEARED), running(ledger, fields=CLEARED)
    ledger.settle(succeeded, Succeed())
    ledger.settle(broken, Fail("no", permanent=True))

    Instances(ledger).end(INSTANCE)

    assert states(ledger, succeeded.id, broken.id) == ["succeeded", "dead"]


def test_a_cleared_job_that_is_made_under_an_ended_instance_is_canceled_at_once(ledger: Ledger) -> None:
    Instances(ledger).end(INSTANCE, "withdrawn")
    key = {"idempotency_key": "ship-7", "unique_mode": "active"}

    answer = ledger.enqueue(NewJob("report", fields=CLEARED, **key))  # type: ignore[arg-type]
    free = ledger.enqueue(NewJob("report", b"others", fields={"instance": INSTANCE}, **key))  # type: ignore[arg-type]

    found = ledger.get(answer.id)
    assert answer.created
    assert (found.status, found.reason) == ("canceled", "instance order-7 has ended: withdrawn")
    assert found.finished_at == START
    assert (free.created, ledger.get(free.id).status) == (True, "pending"), "the key is free again"


def test_an_ended_instance_is_not_suspended_or_resumed(ledger: Ledger, store: Store) -> None:
    made(ledger)
    Instances(ledger).end(INSTANCE)

    with store.unchanged():
        for verb, word in (("pause", "suspended"), ("resume", "resumed")):
            with pytest.raises(InstanceEnded, match=f"instance order-7 has ended, it cannot be {word}"):
                getattr(Instances(ledger), verb)(INSTANCE)


def test_a_cleared_job_of_an_ended_instance_is_not_retried(ledger: Ledger, store: Store) -> None:
    other = running(ledger, fields=PAUSABLE)
    ledger.settle(other, Fail("no", permanent=True))
    cleared = made(ledger, CLEARED)
    Instances(ledger).end(INSTANCE)

    with (
        store.unchanged(),
        pytest.raises(InstanceEnded, match=f"retry of job {cleared} refused: its instance order-7"),
    ):
        ledger.retry(cleared)
    assert ledger.retry(other.id)


# -- nothing is kept for ever -----------------------------------------------------------------------------------------


def instance_keys(store: Store) -> list[str]:
    return [name for name in store.dump() if ":in:" in name or name.endswith(":ins")]


def test_nothing_is_stored_of_a_normal_instance(ledger: Ledger, store: Store) -> None:
    made(ledger)
    Instances(ledger).resume(INSTANCE)
    assert instance_keys(store) == []

    Instances(ledger).pause(INSTANCE)
    assert len(instance_keys(store)) == 1, "the flag; the reaper need not visit it"
    Instances(ledger).resume(INSTANCE)

    assert instance_keys(store) == []


def test_the_flag_of_an_ended_instance_goes_a_day_later_without_jobs(
    ledger: Ledger, at: At, store: Store
) -> None:
    Instances(ledger).end(INSTANCE)

    at(START + DAY - 1).reap()
    assert len(instance_keys(store)) == 2
    at(START + DAY).reap()

    assert instance_keys(store) == []


def test_the_flag_of_an_ended_instance_stays_with_its_jobs(ledger: Ledger, at: At, store: Store) -> None:
    lease = running(ledger, fields={"instance": INSTANCE})
    Instances(ledger).end(INSTANCE)
    at(START + 1_000).settle(lease, Succeed())

    at(START + DAY).reap()
    assert Instances(ledger).get(INSTANCE).flag.state == "ended"
    redis: Any = ledger.scripts.redis
    assert redis.zscore(ledger.keys("instances"), INSTANCE) == START + 2 * DAY
    forget_the_first_success(at(START + DAY + 1_000))
    at(START + 2 * DAY).reap()

    assert instance_keys(store) == []


def forget_the_first_success(ledger: Ledger) -> None:
    """Its retention is over, and with the next one that succeeds it goes."""
    first = ledger.list(status="succeeded").items[-1]
    ledger.settle(running(ledger, "other", fields={"priority": "0"}), Succeed())
    assert ledger.get_many([first.id]) == []


# -- the walk ---------------------------------------------------------------------------------------------------------


def test_a_thousand_jobs_follow_in_slices(ledger: Ledger, at: At, faults: Faults) -> None:
    ledger.enqueue_many([NewJob("report", when="+60000", fields=PAUSABLE) for _ in range(1_000)])
    claimed = len(at(START + MINUTE).claim("advance", "one", 100).leases)

    Instances(at(START + MINUTE)).pause(INSTANCE)

    assert claimed == 100
    assert ledger.counts() == {("report", "paused"): 1_000}
    assert faults.calls.count("instance_walk") == 1_000 // STEP
    Instances(ledger).resume(INSTANCE)
    assert ledger.counts() == {("report", "pending"): 1_000}


@pytest.mark.parametrize("word", ["pause", "resume", "end"])
@pytest.mark.parametrize("dies", ["die_before", "die_after"])
@pytest.mark.parametrize(
    ("script", "nth"), [("instance_flag", 1), ("index_put", 1), ("instance_walk", 1), ("instance_walk", 2)]
)
def test_a_walk_whose_driver_dies_is_gone_on_with_by_a_reaper(
    ledger: Ledger, at: At, faults: Faults, word: str, dies: str, script: str, nth: int
) -> None:
    jobs = [made(ledger, BOTH) for _ in range(4)]
    if word == "resume":
        Instances(ledger).pause(INSTANCE)
    getattr(faults, dies)(script, nth)
    with pytest.raises(Died):
        getattr(Instances(ledger, step=1), word)(INSTANCE)
    said = script != "instance_flag" or dies == "die_after"

    before = ledger.standing()
    at(START + 999).reap()
    early = states(ledger, *jobs)
    at(START + 1_000).reap()

    ends = {"pause": "paused", "resume": "pending", "end": "canceled"}
    starts = {"pause": "pending", "resume": "paused", "end": "pending"}
    assert len(set(early)) == 1 + said, "the reaper leaves it to its driver for a second"
    assert states(ledger, *jobs) == [ends[word] if said else starts[word]] * 4
    assert [news.due_ms for news in before if news.queue == REAP] == ([START + 1_000] if said else [])


def test_a_job_that_goes_while_the_walk_stands_at_it_hides_none(ledger: Ledger, at: At) -> None:
    first = running(ledger, fields={"instance": INSTANCE})
    ledger.settle(first, Succeed())
    jobs = [made(ledger, when="+999999999") for _ in range(3)]
    tomorrow = at(START + DAY)
    epoch = Instances(tomorrow, step=1).begin(INSTANCE, "suspended")

    forget_the_first_success(tomorrow)
    go_on(tomorrow, INSTANCE, epoch, step=1)

    assert states(ledger, *jobs) == ["paused"] * 3


def test_a_reaper_that_dies_leaves_the_walk_to_the_next(ledger: Ledger, at: At, faults: Faults) -> None:
    job = made(ledger)
    set_before_the_walk(ledger, "suspended")
    faults.die_after("reap")
    with pytest.raises(Died):
        at(START + 1_000).reap()

    assert [news.due_ms for news in ledger.standing() if news.queue == REAP] == [START + 2_000]
    at(START + 2_000).reap()
    assert ledger.get(job).status == "paused"


def test_a_reaper_shares_its_steps_among_the_walks(
    ledger: Ledger, at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a large one would keep it from the leases of others."""
    for name in ("order-1", "order-2"):
        fields = {"instance": name, "pausable": "1"}
        ledger.enqueue_many([NewJob("report", fields=fields) for _ in range(2 * STEP)])
        Instances(ledger, step=1).begin(name, "suspended")
    monkeypatch.setattr("tenure.lease.ledger.STEPS", 2)

    at(START + 1_000).reap()

    assert ledger.counts()["report", "paused"] == 2 * (1 + STEP)
    at(START + 2_000).reap()
    assert ledger.counts() == {("report", "paused"): 4 * STEP}


def test_a_name_without_a_job_does_not_stop_the_walk(ledger: Ledger) -> None:
    redis: Any = ledger.scripts.redis
    group = ledger.keys("group", kind="instance", value=INSTANCE)
    job = made(ledger)
    redis.zadd(group, {"nobody": START - 1})

    Instances(ledger, step=1).pause(INSTANCE)

    assert ledger.get(job).status == "paused"
    redis.zrem(group, "nobody")


def test_a_later_word_ends_the_walk_of_an_earlier_one(ledger: Ledger) -> None:
    jobs = [made(ledger) for _ in range(3)]
    first = Instances(ledger, step=1).begin(INSTANCE, "suspended")
    second = Instances(ledger, step=1).begin(INSTANCE, "")

    assert not go_on(ledger, INSTANCE, first, step=1, steps=1), "its driver is told that it is over"
    assert states(ledger, *jobs) == ["pending"] * 3
    go_on(ledger, INSTANCE, second)
    assert Instances(ledger).get(INSTANCE).flag.state is InstanceState.NORMAL


# -- concurrency keys --------------------------------------------------------------------------------------------------

KEYED = {**PAUSABLE, "concurrency_key": "shop", "concurrency_limit": "1"}


@pytest.mark.parametrize("word", ["pause", "end"])
def test_a_withdrawn_job_holds_its_key_until_its_worker_has_stopped(ledger: Ledger, word: str) -> None:
    lease = running(ledger, fields={**KEYED, "cleared_on_end": "1"})
    second = made(ledger, {"concurrency_key": "shop"})

    getattr(Instances(ledger), word)(INSTANCE)

    assert claimed_ids(ledger, 2) == []
    ledger.settle(lease, Stopped())
    assert claimed_ids(ledger, 2) == [second]


def test_a_resumed_job_waits_for_its_own_old_worker(ledger: Ledger, at: At) -> None:
    lease = running(ledger, fields=KEYED)
    Instances(ledger).pause(INSTANCE)
    Instances(ledger).resume(INSTANCE)

    assert claimed_ids(ledger, 1) == []
    assert at(lease.expires_at).reap() == []
    assert claim(at(lease.expires_at)).attempt == 2


def test_jobs_that_wait_for_a_key_pause_and_come_back_in_order(ledger: Ledger, store: Store) -> None:
    first = running(ledger, fields={"concurrency_key": "shop"})
    jobs = [made(ledger, KEYED) for _ in range(3)]
    other = made(ledger, {"concurrency_key": "shop"})
    Instances(ledger).pause(INSTANCE)
    made(ledger, KEYED)

    ledger.settle(first, Succeed())
    lease = claim(ledger)
    assert lease.id == other
    ledger.settle(lease, Succeed())
    assert claimed_ids(ledger, 9) == []
    kept = [name for name in store.dump() if parse(name)[2] in ("waiters", "hidden", "share", "holders")]
    assert kept == [], "nothing is left of the key"

    Instances(ledger).resume(INSTANCE)
    came: list[str] = []
    while (leases := ledger.claim("advance", "one", 9).leases) and len(leases) == 1:
        ledger.settle(leases[0], Succeed())
        came.append(leases[0].id)
    assert came[:3] == jobs
    assert len(came) == 4


# -- the flag is the truth before the walk has come ------------------------------------------------------------------

OUTCOMES: list[tuple[Outcome, int]] = [
    (NextChunk(b"cursor", done=1, total=2), 0),
    (NextChunk(b"cursor", delay_ms=5_000), 5_000),
    (Fail("no luck", delay_ms=30_000), 30_000),
    (Lose("exit code -9"), 0),
    (GiveBack(), 0),
    (GiveBack(started=False, delay_ms=7_000), 7_000),
]


def name(outcome: Outcome) -> str:
    return repr(outcome)[:40]


@pytest.mark.parametrize(("outcome", "remaining"), OUTCOMES, ids=[name(outcome) for outcome, _ in OUTCOMES])
def test_what_would_be_pending_again_is_paused(
    ledger: Ledger, at: At, store: Store, outcome: Outcome, remaining: int
) -> None:
    lease = held_under(ledger, "suspended")

    ledger.settle(lease, outcome)
    with store.unchanged():
        ledger.settle(lease, outcome) if outcome != GiveBack(False, 7_000) else None

    found = view(ledger, lease)
    assert (found.status, found.remaining_ms, found.generation) == ("paused", remaining, 2)
    assert not [attempt for attempt in found.attempts if attempt.status == "running"]
    assert [(deed.verb, deed.by, deed.reason) for deed in found.history] == [("pause", "ada", "stock count")]
    if isinstance(outcome, NextChunk):
        assert (found.cursor, found.chunk, found.attempts[0].cause) == (b"cursor", 1, "paused")
        assert found.failures == 0
    Instances(at(START + HOUR)).resume(INSTANCE)
    assert claim(at(START + HOUR + remaining)).id == lease.id


def held_under(ledger: Ledger, flag: str, fields: dict[str, str] = PAUSABLE) -> Lease:
    """A running job that the walk has not reached."""
    lease = running(ledger, fields={**fields, "background": "1"})
    set_before_the_walk(ledger, flag)
    assert view(ledger, lease).status == "running"
    return lease


@pytest.mark.parametrize("outcome", [Succeed(b"r"), SkipRest("none"), Fail("no", permanent=True)], ids=name)
def test_what_ends_ends(ledger: Ledger, outcome: Outcome) -> None:
    lease = held_under(ledger, "suspended")

    ledger.settle(lease, outcome)

    assert view(ledger, lease).ended


@pytest.mark.parametrize("outcome", [outcome for outcome, _ in OUTCOMES], ids=name)
def test_what_would_be_pending_again_is_canceled_when_its_instance_has_ended(
    ledger: Ledger, outcome: Outcome
) -> None:
    lease = held_under(ledger, "ended", CLEARED)

    ledger.settle(lease, outcome)

    found = view(ledger, lease)
    assert (found.status, found.reason) == ("canceled", "instance order-7 has ended: stock count")
    assert not [attempt for attempt in found.attempts if attempt.status == "running"]


@pytest.mark.parametrize(("flag", "state"), [("suspended", "paused"), ("ended", "canceled")])
def test_a_lost_lease_is_taken_back_to_where_the_flag_says(
    ledger: Ledger, at: At, flag: str, state: str
) -> None:
    lease = held_under(ledger, flag, BOTH)

    assert at(lease.expires_at).reap()[0] == (lease.id, state)

    found = view(ledger, lease)
    assert (found.losses, found.attempts[0].cause) == (1, "lease_lost")


@pytest.mark.parametrize(("flag", "state"), [("suspended", "paused"), ("ended", "canceled")])
def test_a_claim_that_meets_a_job_before_the_walk_does_passes_it_over(
    ledger: Ledger, flag: str, state: str
) -> None:
    held_back = [made(ledger, BOTH) for _ in range(3)]
    free = made(ledger, {})
    set_before_the_walk(ledger, flag)

    assert [lease.id for lease in claim_until(ledger, 2)] == [free], "nobody stands in front of another"

    assert set(states(ledger, *held_back)) == {state}


def claim_until(ledger: Ledger, want: int) -> list[Lease]:
    """Claim as a worker does: as long as the answer says that something is due."""
    leases: list[Lease] = []
    while True:
        found = ledger.claim("advance", "one", want)
        leases += found.leases
        if not found.news.is_due:
            return leases


@pytest.mark.parametrize(("flag", "state"), [("suspended", "paused"), ("ended", "canceled")])
def test_the_reaper_puts_a_late_start_where_the_flag_says(
    ledger: Ledger, at: At, flag: str, state: str
) -> None:
    job = made(ledger, {**BOTH, "start_by": "+1"})
    set_before_the_walk(ledger, flag)

    assert at(START + 1).reap() == [(job, state)]
