"""The runtime status: what it says is what the rows say, at this moment and over the server's last hour."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given as example
from hypothesis import strategies as st

from tenure.lease.hour import Ended, Waits
from tenure.lease.ledger import LEASE_MS, Ledger, NewJob, new_token
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, SkipRest, Succeed
from tenure.lease.status import LOOK, RuntimeStatus, runtime_status
from tenure.lease.summary import summary
from tenure.lease.workers import Heartbeat, Slots, WorkerState
from tenure.scripts import Call
from tenure.scripts.loader import SHARED, Library
from tenure.scripts.states import Cause, State
from tenure.scripts.waits import BOUNDS, LONGEST_MS, RATIO, percentile
from tenure.testing import START, Faults

from .given import At, Store, claim, running

MINUTE_MS = 60_000
HOUR_MS = 3_600_000


def status(ledger: Ledger) -> RuntimeStatus:
    return runtime_status(ledger)


def works(ledger: Ledger, at: At, wait_ms: int, last_ms: int, outcome: Any = None, **job: Any) -> None:
    """A job that waits, runs and ends, beginning at the ledger's instant."""
    ledger.enqueue(NewJob(job.pop("task", "report"), **job))
    now = ledger.scripts.now or 0
    lease = claim(at(now + wait_ms), pool=job.get("pool", "advance"))
    at(now + wait_ms + last_ms).settle(lease, outcome or Succeed())


# -- nothing ----------------------------------------------------------------------------------------------------------


def test_of_a_tenant_without_jobs_nothing_is_known_and_nothing_is_written(
    ledger: Ledger, store: Store
) -> None:
    with store.unchanged():
        seen = status(ledger)

    assert (seen.tenant, seen.read_at, seen.complete, seen.looked_at) == ("acme", START, True, 0)
    assert (seen.in_flight, seen.stuck, seen.backlog, seen.behind_keys, seen.not_due, seen.dead) == (0,) * 6
    assert (seen.oldest_wait_ms, seen.last_claim_at) == (None, None)
    assert (seen.waits.p50, seen.waits.p95, seen.waits.p99) == (None, None, None)
    assert (seen.ended.failure_rate, seen.ended.mean_duration_ms) == (None, None)
    assert (seen.pools, seen.tasks, seen.unserved) == ({}, {}, [])


def test_a_tenant_sees_only_its_own(ledger: Ledger, ledgers: Ledgers, at: At) -> None:
    works(ledger, at, 5, 100)

    other = status(ledgers.of("other"))

    assert (other.waits.count, other.ended.count, other.tasks, other.pools) == (0, 0, {}, {})


# -- this moment ------------------------------------------------------------------------------------------------------


def test_what_runs_is_in_flight_and_stuck_from_the_instant_its_lease_is_gone(ledger: Ledger, at: At) -> None:
    running(ledger)
    ledger.enqueue(NewJob("mail", pool="outbound"))
    lease = claim(ledger, pool="outbound")

    before, after = status(at(lease.expires_at - 1)), status(at(lease.expires_at))

    assert (before.in_flight, before.stuck) == (2, 0)
    assert (after.in_flight, after.stuck, after.complete) == (2, 2, True)
    assert [(name, pool.in_flight, pool.stuck) for name, pool in after.pools.items()] == [
        ("advance", 1, 1),
        ("outbound", 1, 1),
    ]
    assert [(name, task.in_flight, task.stuck) for name, task in after.tasks.items()] == [
        ("mail", 1, 1),
        ("report", 1, 1),
    ]


def test_what_is_past_its_deadline_is_stuck_though_it_was_renewed_to_the_last(ledger: Ledger, at: At) -> None:
    lease = running(ledger, fields={"timeout": 30_000})
    at(START + 20_000).renew([lease])

    assert status(at(lease.deadline - 1)).stuck == 0
    assert status(at(lease.deadline)).stuck == 1


def test_a_reaped_job_is_stuck_no_more(ledger: Ledger, at: At) -> None:
    later = at(running(ledger).expires_at)
    later.reap()

    seen = status(later)

    assert (seen.in_flight, seen.stuck, seen.backlog) == (0, 0, 1)


def test_the_backlog_is_what_is_due_in_every_priority(ledger: Ledger, at: At) -> None:
    for priority in range(10):
        fields = {"priority": str(priority)}
        ledger.enqueue(NewJob("report", when=f"+{1_000 * (priority + 1)}", fields=fields))
    ledger.enqueue(NewJob("mail", pool="outbound", when="+3000"))

    seen = status(at(START + 7_500))

    assert (seen.backlog, seen.not_due, seen.behind_keys) == (8, 3, 0)
    assert seen.oldest_wait_ms == 6_500
    assert {name: (pool.backlog, pool.not_due, pool.oldest_wait_ms) for name, pool in seen.pools.items()} == {
        "advance": (7, 3, 6_500),
        "outbound": (1, 0, 4_500),
    }
    report, mail = seen.tasks["report"], seen.tasks["mail"]
    assert (report.due, report.not_due, report.oldest_wait_ms) == (7, 3, 6_500)
    assert (report.earliest_due, report.latest_due) == (START + 1_000, START + 10_000)
    assert (mail.due, mail.not_due, mail.earliest_due, mail.latest_due) == (
        1,
        0,
        START + 3_000,
        START + 3_000,
    )
    assert (seen.looked_at, seen.complete) == (11, True)


def test_what_waits_behind_a_concurrency_key_is_told_apart(ledger: Ledger) -> None:
    fields = {"concurrency_key": "shop:7"}
    for _ in range(4):
        ledger.enqueue(NewJob("sync", fields=fields))
    ledger.enqueue(NewJob("sync", when="+1000", fields=fields))
    ledger.enqueue(NewJob("report"))

    seen = status(ledger)
    assert (seen.backlog, seen.behind_keys, seen.not_due) == (2, 3, 1)
    ledger.claim("advance", "one", 9)

    seen = status(ledger)
    assert (seen.backlog, seen.behind_keys, seen.not_due, seen.oldest_wait_ms) == (0, 3, 1, None)
    sync = seen.tasks["sync"]
    assert (sync.due, sync.not_due, sync.earliest_due, sync.latest_due) == (3, 1, START, START + 1_000)
    assert (seen.looked_at, seen.complete) == (4, True)


def test_nothing_due_is_no_wait(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report", when="+1000"))

    seen = status(ledger)

    assert (seen.backlog, seen.oldest_wait_ms, seen.tasks["report"].oldest_wait_ms) == (0, None, None)
    assert seen.tasks["report"].earliest_due == START + 1_000


def test_what_failed_and_waits_is_retrying_until_it_is_claimed_or_given_up(ledger: Ledger, at: At) -> None:
    leases = [running(ledger) for _ in range(3)]
    for lease in leases:
        ledger.settle(lease, Fail("no luck", delay_ms=1_000))
    retrying = [status(ledger).tasks["report"].retrying]

    ledger.cancel(leases[0].id)
    retrying.append(status(ledger).tasks["report"].retrying)
    again = claim(at(START + 1_000))
    retrying.append(status(ledger).tasks["report"].retrying)
    at(START + 2_000).settle(again, Succeed())

    assert retrying == [3, 2, 1]


def test_a_lost_job_and_one_between_chunks_are_not_retrying(ledger: Ledger) -> None:
    ledger.settle(running(ledger), Lose("the slot died", Cause.KILLED))
    lease = claim(ledger)
    ledger.settle(lease, Fail("once", delay_ms=0))
    ledger.settle(claim(ledger), NextChunk(b"c", done=1, total=2, delay_ms=60_000))

    assert status(ledger).tasks["report"].retrying == 0


def test_the_dead_are_counted_by_pool_and_task_until_they_are_retried(ledger: Ledger) -> None:
    lease = running(ledger)
    ledger.settle(lease, Fail("never", permanent=True))
    before = status(ledger)

    ledger.retry(lease.id)

    assert (before.dead, before.pools["advance"].dead, before.tasks["report"].dead) == (1, 1, 1)
    after = status(ledger)
    assert (after.dead, after.pools["advance"].dead, after.tasks["report"].dead) == (0, 0, 0)


def test_the_last_claim_is_remembered_by_pool_and_task_however_long_ago_it_was(
    ledger: Ledger, at: At
) -> None:
    works(ledger, at, 10, 100)
    works(at(START + 5_000), at, 10, 100, task="mail", pool="outbound")
    at(START + 9_000).claim("advance", "one")  # finds nothing, so it is none

    seen = status(at(START + 10 * HOUR_MS))

    assert seen.last_claim_at == START + 5_010
    assert {name: pool.last_claim_at for name, pool in seen.pools.items()} == {
        "advance": START + 10,
        "outbound": START + 5_010,
    }
    assert {name: task.last_claim_at for name, task in seen.tasks.items()} == {
        "mail": START + 5_010,
        "report": START + 10,
    }


def test_with_the_last_job_of_a_task_goes_all_that_is_remembered_of_it(
    ledger: Ledger, at: At, store: Store
) -> None:
    works(ledger, at, 10, 100, task="once")
    tomorrow = START + 86_400_000 + 110

    works(at(tomorrow), at, 10, 100)

    seen = status(at(tomorrow + 110))
    assert set(seen.tasks) == {"report"}
    held = at(tomorrow + 110).scripts.redis.hkeys(ledger.keys("figures"))
    assert not [name for name in held if b"once" in name]


# -- as much as is looked at ------------------------------------------------------------------------------------------


def many(ledger: Ledger, task: str, number: int, when: str, priority: int = 5) -> None:
    for at in range(0, number, 500):
        some = min(500, number - at)
        fields = {"priority": str(priority)}
        ledger.enqueue_many([NewJob(task, when=when, fields=fields) for _ in range(some)])


def test_future_jobs_beyond_the_look_hide_no_due_one(ledger: Ledger) -> None:
    many(ledger, "later", LOOK, "+60000", priority=0)
    many(ledger, "other", 100, "+90000", priority=9)
    many(ledger, "now", 10, "+0", priority=9)

    seen = status(ledger)

    assert (seen.backlog, seen.not_due, seen.looked_at, seen.complete) == (10, LOOK + 100, LOOK, False)
    now, later, other = (seen.tasks[name] for name in ("now", "later", "other"))
    assert (now.due, now.not_due, now.earliest_due, now.latest_due) == (10, 0, START, START)
    assert (later.due, later.not_due, later.earliest_due, later.latest_due) == (0, LOOK, None, None)
    assert (other.due, other.not_due, other.latest_due) == (0, 100, None)


def test_due_jobs_beyond_the_look_are_counted_by_pool_and_not_guessed_by_task(ledger: Ledger) -> None:
    many(ledger, "first", LOOK, "+0", priority=1)
    many(ledger, "second", 100, "+0")
    ledger.enqueue(NewJob("elsewhere", pool="outbound"))

    seen = status(ledger)

    assert (seen.backlog, seen.complete) == (LOOK + 101, False)
    assert seen.looked_at == LOOK // 2 + 1, "the pools share it"
    first, second, elsewhere = (seen.tasks[name] for name in ("first", "second", "elsewhere"))
    assert (first.due, first.not_due, first.earliest_due) == (None, None, None)
    assert (second.due, second.not_due, second.oldest_wait_ms) == (None, None, None)
    assert (elsewhere.due, elsewhere.not_due) == (1, 0), "all there are of it were looked at"


def test_more_stuck_jobs_than_the_look_are_all_counted_and_the_rest_is_said_to_be_unknown(
    ledger: Ledger, at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.lease.status.LOOK", 20)
    many(ledger, "report", 25, "+0")
    ledger.claim("advance", "one", 25)

    seen = status(at(START + LEASE_MS))

    assert (seen.stuck, seen.tasks["report"].stuck, seen.complete) == (25, 20, False)


# -- the last hour ----------------------------------------------------------------------------------------------------


def test_waits_are_counted_from_the_due_time_of_each_attempt(ledger: Ledger, at: At) -> None:
    ledger.enqueue(NewJob("report", when="+1000"))
    lease = claim(at(START + 1_003))
    at(START + 2_000).settle(lease, Fail("no luck", delay_ms=500))
    claim(at(START + 2_505))
    works(ledger, at, 7, 10, task="mail", pool="outbound")

    seen = status(at(START + 3_000))

    assert {name: dict(pool.waits.buckets) for name, pool in seen.pools.items()} == {
        "advance": {3: 1, 5: 1},
        "outbound": {7: 1},
    }
    assert (seen.waits.count, seen.waits.p50, seen.waits.p95, seen.waits.p99) == (3, 5, 7, 7)
    assert (seen.pools["advance"].waits.p50, seen.pools["advance"].waits.p99) == (3, 5)


def test_the_next_chunk_of_an_open_attempt_is_no_wait(ledger: Ledger, at: At) -> None:
    lease = running(ledger)
    at(START + 10).settle(lease, NextChunk(b"c"))
    lease = claim(at(START + 5_000))
    at(START + 6_000).settle(lease, Succeed())

    seen = status(at(START + 6_000))

    assert dict(seen.waits.buckets) == {0: 1}
    assert seen.tasks["report"].ended == Ended(1, 0, 6_000), "chunks and what lies between are one attempt"


def test_a_row_given_back_unstarted_was_no_attempt_and_no_wait(ledger: Ledger, at: At) -> None:
    ledger.enqueue(NewJob("report"))
    lease = claim(at(START + 100))
    at(START + MINUTE_MS + 100).settle(lease, GiveBack(started=False, delay_ms=0))
    first = status(at(START + MINUTE_MS + 100))

    claim(at(START + MINUTE_MS + 200))

    assert (first.waits.count, first.waits.p99, first.ended) == (0, None, Ended())
    second = status(at(START + MINUTE_MS + 200))
    assert (second.waits.count, second.waits.p99) == (1, 107)


def test_a_call_sent_again_is_counted_once(ledger: Ledger, at: At, faults: Faults) -> None:
    ledger.enqueue(NewJob("report"))
    call = ledger.claim_call("advance", "one", 1, new_token())
    (lease,) = ledger.scripts.run(call).leases
    ledger.scripts.run(call)
    for _ in range(2):
        at(START + 50).settle(lease, Succeed())

    seen = status(at(START + 50))

    assert (seen.waits.count, seen.ended) == (1, Ended(1, 0, 50))


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [
        (Succeed(), 0),
        (SkipRest("nothing to do"), 0),
        (Fail("no luck", delay_ms=1_000), 1),
        (Fail("never", permanent=True), 1),
        (Lose("the slot died", Cause.KILLED), 1),
        (GiveBack(started=True), 0),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, int) else "",
)
def test_an_attempt_that_ends_is_counted_however_it_does(
    ledger: Ledger, at: At, outcome: Any, failed: int
) -> None:
    at(START + 400).settle(running(ledger), outcome)

    assert status(at(START + 400)).tasks["report"].ended == Ended(1, failed, 400)


def test_what_the_reaper_and_a_cancel_end_is_counted_too(ledger: Ledger, at: At) -> None:
    lost, canceled = running(ledger), running(ledger, task="mail")
    timed_out = running(ledger, task="slow", fields={"timeout": 10_000})
    at(START + 200).cancel(canceled.id)
    at(timed_out.deadline).reap()
    at(lost.expires_at).reap()

    seen = status(at(lost.expires_at))

    assert {name: task.ended for name, task in seen.tasks.items()} == {
        "mail": Ended(1, 0, 200),
        "report": Ended(1, 1, LEASE_MS),
        "slow": Ended(1, 1, timed_out.deadline - START),
    }
    assert seen.ended.failure_rate == pytest.approx(2 / 3)
    assert seen.ended.mean_duration_ms == round((200 + LEASE_MS + timed_out.deadline - START) / 3)


def test_what_happened_is_of_the_last_hour_as_long_as_its_minute_is_one_of_60_before_this(
    ledger: Ledger, at: At
) -> None:
    works(ledger, at, 5, 100)
    minute = START - START % MINUTE_MS

    kept, gone = at(minute + 61 * MINUTE_MS - 1), at(minute + 61 * MINUTE_MS)

    assert (status(kept).waits.count, status(kept).ended) == (1, Ended(1, 0, 100))
    assert (status(gone).waits.count, status(gone).ended) == (0, Ended())


def test_each_minute_of_a_long_day_counts_for_one_hour(ledger: Ledger, at: At) -> None:
    for minute in range(150):
        works(at(START + minute * MINUTE_MS), at, 0, 10)

    seen = status(at(START + 149 * MINUTE_MS + 10))

    assert (seen.waits.count, seen.ended) == (61, Ended(61, 0, 610))
    slots = ledger.scripts.redis.scan_iter(match=f"{ledger.keys.base}hour:*", count=10_000)
    assert len(list(slots)) == 61


def test_a_slot_that_is_used_again_holds_nothing_of_the_hour_before(ledger: Ledger, at: At) -> None:
    works(ledger, at, 5, 100, task="old", pool="outbound")

    later = at(START + 61 * MINUTE_MS)
    works(later, at, 3, 10)

    stored: Any = later.scripts.redis.hgetall(ledger.keys("minute", slot=str(START // MINUTE_MS % 61)))
    assert {name: int(value) for name, value in stored.items()} == {
        b"m": (START // MINUTE_MS) + 61,
        b"3|advance": 1,
        b"n|report": 1,
        b"d|report": 10,
    }


def test_a_small_step_back_of_the_clock_loses_nothing(ledger: Ledger, at: At) -> None:
    works(at(START + 5 * MINUTE_MS), at, 5, 100)
    works(ledger, at, 5, 100)
    lease = running(at(START + 5 * MINUTE_MS))
    ledger.settle(lease, Succeed())  # by a clock that went back meanwhile

    back, again = status(ledger), status(at(START + 5 * MINUTE_MS))

    assert (back.waits.count, back.ended.count) == (1, 1), "what is ahead is not of the last hour"
    assert (again.waits.count, again.ended) == (3, Ended(3, 0, 200))


def test_a_large_step_back_of_the_clock_begins_its_slots_anew(ledger: Ledger, at: At) -> None:
    works(at(START + 61 * MINUTE_MS), at, 5, 100)

    works(ledger, at, 3, 10)

    seen = status(ledger)
    assert (dict(seen.waits.buckets), seen.ended) == ({3: 1}, Ended(1, 0, 10))


def test_what_corrects_a_minute_that_has_lost_its_slot_leaves_the_others_alone(
    ledger: Ledger, at: At
) -> None:
    ahead = running(at(START + 61 * MINUTE_MS))
    works(ledger, at, 3, 10)  # by a clock that went back: in the same slot

    at(START + 20).settle(ahead, GiveBack(started=False))

    assert dict(status(at(START + 20)).waits.buckets) == {3: 1}
    assert status(at(START + 61 * MINUTE_MS)).waits.count == 0


def test_no_outcome_depends_on_a_time_to_live_which_only_clears_up(ledger: Ledger, at: At) -> None:
    """I12."""
    works(ledger, at, 5, 100)
    redis: Any = ledger.scripts.redis
    key = ledger.keys("minute", slot=str(START // MINUTE_MS % 61))
    assert HOUR_MS < redis.pttl(key) <= 62 * MINUTE_MS

    redis.persist(key)

    assert status(at(START + 200)).ended == Ended(1, 0, 100)
    assert status(at(START + 62 * MINUTE_MS)).ended == Ended()


def test_the_numbers_agree_with_the_rows(ledger: Ledger, at: At) -> None:
    """And after each test the invariants compare them minute by minute."""
    outcomes = [Succeed(), Fail("no", delay_ms=0), Fail("no", permanent=True), Lose("dead", Cause.KILLED)]
    now = START
    for number in range(60):
        now += 7_000
        ledger.enqueue(NewJob(f"task{number % 3}"))
        for lease in at(now + number).claim("advance", "one", 2).leases:
            at(now + 2 * number).settle(lease, outcomes[number % 4])
    seen = status(at(now + 200))

    jobs = at(now).get_many([job.id for job in every_job(ledger)])
    ended = [attempt for job in jobs for attempt in job.attempts if attempt.ended_at is not None]
    assert seen.waits.count == sum(len(job.attempts) for job in jobs)
    assert seen.ended == Ended(
        len(ended),
        sum(attempt.status == "failed" for attempt in ended),
        sum((attempt.ended_at or 0) - attempt.started_at for attempt in ended),
    )
    counted = summary("acme", at(now).counts())
    states = Counter(job.status for job in jobs)
    assert counted.states == {state: states[state] for state in State}
    assert (seen.backlog + seen.not_due, seen.dead) == (states[State.PENDING], states[State.DEAD])
    by_task = Counter(job.task for job in jobs if job.status is State.PENDING and job.failures > 0)
    assert {name: task.retrying for name, task in seen.tasks.items() if task.retrying} == by_task


def every_job(ledger: Ledger) -> list[Any]:
    found, cursor = [], None
    while True:
        page = ledger.list(limit=100, cursor=cursor)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


_BUCKETS = """-- REST ms
local found = {}
for at = FIRST, #ARGV do found[#found + 1] = bucket_of(tonumber(ARGV[at])) end
return found
"""

# -- percentiles ------------------------------------------------------------------------------------------------------


def test_lua_counts_by_the_bounds_that_python_reads_by(ledger: Ledger) -> None:
    shared = files("tenure.scripts").joinpath("lua", "shared")
    parts = {name: shared.joinpath(f"{name}.lua").read_text() for name in SHARED}
    scripts = replace(ledger.scripts, library=Library({"buckets": _BUCKETS}, parts))
    waits = sorted({max(0, bound + by) for bound in BOUNDS for by in (-1, 0, 1)} | {LONGEST_MS * 100})

    found = scripts.run(Call("buckets", ledger.keys.home, {}, list, waits))

    assert found == [max(at for at, bound in enumerate(BOUNDS) if bound <= wait) for wait in waits]


@example(st.lists(st.integers(0, LONGEST_MS - 1), min_size=1, max_size=200), st.sampled_from([50, 95, 99]))
def test_a_percentile_is_never_under_the_true_one_and_less_than_19_percent_over_it(
    waits: list[int], percent: int
) -> None:
    buckets = Counter(max(at for at, bound in enumerate(BOUNDS) if bound <= wait) for wait in waits)
    true = sorted(waits)[math.ceil(percent * len(waits) / 100) - 1]

    told = percentile(buckets, percent)

    assert told is not None
    assert true <= told <= true * RATIO
    if true < 8:
        assert told == true


def test_a_wait_over_50_days_is_told_as_50_days() -> None:
    assert percentile({len(BOUNDS) - 1: 1}, 50) == LONGEST_MS


def test_percentiles_of_pools_add_up_by_bucket() -> None:
    assert (Waits({0: 50, 3: 49, 6: 1}).p50, Waits({0: 50, 3: 49, 6: 1}).p99) == (0, 3)


# -- workers ----------------------------------------------------------------------------------------------------------


def heartbeat(state: WorkerState = WorkerState.ACTIVE, **pools: Slots) -> Heartbeat:
    return Heartbeat("north", 7, "0.1.0", state, pools, 3, 0, 0, 0, None)


def test_slots_are_those_of_live_workers_and_a_pool_without_one_is_named(ledger: Ledger, at: At) -> None:
    ledger.index.beat("old", heartbeat(advance=Slots(9, 9)))
    later = at(START + 91_000)
    later.index.beat("one", heartbeat(advance=Slots(1, 4)))
    later.index.beat("two", heartbeat(advance=Slots(2, 2), bulk=Slots(0, 3)))
    later.index.beat("ended", heartbeat(WorkerState.ENDED, advance=Slots()))
    ledger.enqueue(NewJob("report"))
    ledger.enqueue(NewJob("mail", pool="outbound", when="+200000"))

    seen = status(later)

    assert (seen.workers_live, seen.workers_seen, seen.slots) == (2, 4, Slots(3, 9))
    assert {name: (pool.workers, pool.slots) for name, pool in seen.pools.items()} == {
        "advance": (2, Slots(3, 6)),
        "bulk": (1, Slots(0, 3)),
        "outbound": (0, Slots()),
    }
    assert seen.unserved == ["outbound"]


def test_a_pool_whose_jobs_are_all_behind_a_key_wants_a_worker_too(ledger: Ledger) -> None:
    for _ in range(2):
        ledger.enqueue(NewJob("sync", pool="outbound", fields={"concurrency_key": "shop:7"}))
    claim(ledger, pool="outbound")

    seen = status(ledger)

    assert (seen.pools["outbound"].backlog, seen.pools["outbound"].behind_keys) == (0, 1)
    assert seen.unserved == ["outbound"]
