"""Rate limits: never more starts in any period than the limit, over all pools, and nobody else is kept waiting."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tenure.lease.jobs import DUE
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import NextChunk, Succeed
from tenure.lease.rates import packed_rate, rate_in_words
from tenure.lease.requests import Options, new_job, row_fields
from tenure.lease.tasks import Task
from tenure.lease.why import why
from tenure.scheduler.scheduler import Scheduler
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import BadInput
from tenure.testing import START

from .given import At, Store, claimed_ids
from .test_holds import claims

MINUTE = 60_000
SIXTIETH = 1_000


def put(ledger: Ledger, rate: str | None = "3/m", task: str = "call", **job: Any) -> str:
    """Make a job of a task with a rate limit."""
    fields = {} if rate is None else {"task_rate": packed_rate(rate)}
    return ledger.enqueue(NewJob(task, fields=fields | job.pop("fields", {}), **job)).id


def keyed(ledger: Ledger, rate: str | None = "3/m", key: str = "api", **job: Any) -> str:
    """Make a job of a concurrency key with a rate limit."""
    fields = {"concurrency_key": key, "concurrency_limit": "1000"}
    fields |= {} if rate is None else {"key_rate": packed_rate(rate)}
    return ledger.enqueue(NewJob("keyed", fields=fields | job.pop("fields", {}), **job)).id


MAKERS = pytest.mark.parametrize("make", [put, keyed], ids=["of a task", "of a key"])


@MAKERS
def test_no_more_start_in_a_period_than_the_limit_says(ledger: Ledger, at: At, make: Any) -> None:
    jobs = [make(ledger) for _ in range(7)]

    assert claims(ledger) == jobs[:3]
    assert ledger.claim("advance", "one").reason == "not_due"
    assert claims(at(START + MINUTE - 1)) == []
    assert claims(at(START + MINUTE + SIXTIETH)) == jobs[3:6]
    assert claims(at(START + 2 * MINUTE + 2 * SIXTIETH)) == jobs[6:]


@MAKERS
def test_the_tenant_is_visited_again_when_the_next_may_start(ledger: Ledger, at: At, make: Any) -> None:
    for _ in range(5):
        make(ledger)
    claims(at(START + 400))

    visit = ledger.index.take(DUE + "advance", 0)

    assert visit.next_due_ms is not None
    assert START + MINUTE <= visit.next_due_ms <= START + MINUTE + SIXTIETH
    assert len(claims(at(visit.next_due_ms))) == 2


@MAKERS
def test_who_waits_for_a_limit_keeps_nobody_else_waiting(ledger: Ledger, make: Any) -> None:
    limited = [make(ledger) for _ in range(300)]
    free = put(ledger, None, "free")
    other = keyed(ledger, key="another")

    found = claims(ledger, 4)

    assert found == [*limited[:3], free, other]


def test_starts_are_counted_over_all_pools(ledger: Ledger) -> None:
    for make in (put, keyed):
        here = [make(ledger) for _ in range(2)]
        there = [make(ledger, pool="outbound") for _ in range(2)]
        assert claims(ledger) == here
        assert claims(ledger, pool="outbound") == there[:1]


@MAKERS
def test_each_chunk_is_a_start(ledger: Ledger, make: Any) -> None:
    make(ledger, "2/m", fields={"background": "1"})
    for _ in range(2):
        (lease,) = ledger.claim("advance", "one").leases
        ledger.settle(lease, NextChunk(b"c", done=1))

    assert claims(ledger) == []


@MAKERS
def test_the_order_of_the_queue_is_kept(ledger: Ledger, at: At, make: Any) -> None:
    last = make(ledger, when="+3")
    second = make(ledger, when="+2")
    first = make(ledger, when="+5", fields={"priority": "0"})

    assert claims(at(START + 10)) == [first, second, last]


@MAKERS
def test_one_claim_takes_what_the_limit_lets_start_and_then_the_others(ledger: Ledger, make: Any) -> None:
    limited = [make(ledger) for _ in range(7)]
    free = put(ledger, None, "free")

    found = ledger.claim("advance", "one", 9)

    assert [lease.id for lease in found.leases] == [*limited[:3], free]
    assert found.news.due_ms == START + MINUTE + SIXTIETH


@MAKERS
def test_a_claim_of_just_so_many_tells_when_the_next_may_start(ledger: Ledger, make: Any) -> None:
    for _ in range(7):
        make(ledger)

    found = ledger.claim("advance", "one", 3)

    assert (len(found.leases), found.news.due_ms) == (3, START + MINUTE + SIXTIETH)


@MAKERS
def test_the_last_that_may_start_need_not_wait(ledger: Ledger, make: Any) -> None:
    jobs = [make(ledger, "2/m") for _ in range(3)]

    assert claimed_ids(ledger, 1) == jobs[:1]
    assert claimed_ids(ledger, 1) == jobs[1:2]
    assert claimed_ids(ledger, 1) == []


@MAKERS
def test_those_that_have_waited_for_a_limit_start_in_the_order_in_which_they_were_due(
    ledger: Ledger, at: At, make: Any
) -> None:
    make(ledger, "1/m")
    later, sooner = make(ledger, "1/m", when="+2000"), make(ledger, "1/m", when="+1000")
    assert len(claims(ledger)) == 1

    assert claims(at(START + MINUTE + SIXTIETH)) == [sooner]
    assert claims(at(START + 2 * (MINUTE + SIXTIETH))) == [later]


@MAKERS
def test_any_period_at_all_has_no_more_starts_than_the_limit(ledger: Ledger, at: At, make: Any) -> None:
    """Also across the edges of minutes, and whenever workers come by."""
    random, now, starts = Random(7), START, list[int]()
    for _ in range(60):
        make(ledger, "5/10s")
    for _ in range(400):
        now += random.choice([0, 1, 40, 166, 167, 900, 3_000])
        starts += [now] * len(at(now).claim("advance", "one", random.randint(1, 9)).leases)

    assert len(starts) == 60
    for first, sixth in zip(starts, starts[5:], strict=False):
        assert sixth - first > 10_000
    assert starts[-1] - START <= 12 * (10_000 + 167 + 3_000)


@MAKERS
def test_what_is_remembered_of_starts_is_bounded(ledger: Ledger, at: At, make: Any) -> None:
    """A number for each sixtieth of the period, and nothing of those before."""
    redis: Any = ledger.scripts.redis
    for step in range(90):
        now = START + step * SIXTIETH
        for _ in range(2):
            make(at(now), "500/m")
        assert len(claims(at(now))) == 2

    used = redis.hget(ledger.keys("gates"), "used call") or redis.get(ledger.keys("pace", key="u:api"))
    starts = dict(part.split(":") for part in used.decode().split())
    assert len(used.split()) == len(starts) <= 62
    assert set(starts.values()) == {"2"}
    assert max(map(int, starts)) == (START + 89 * SIXTIETH) // SIXTIETH


@MAKERS
def test_the_last_word_on_a_limit_counts(ledger: Ledger, make: Any) -> None:
    for _ in range(6):
        make(ledger, "1/m")
    assert len(claims(ledger)) == 1
    make(ledger, "4/m")
    assert len(claims(ledger)) == 3
    make(ledger, None)
    assert len(claims(ledger)) == 4


def test_nothing_is_left_of_a_limit_that_code_no_longer_has(ledger: Ledger, store: Store) -> None:
    put(ledger)
    claims(ledger)
    put(ledger, None)
    claims(ledger)
    claims(ledger)

    assert not store.redis.exists(ledger.keys("gates"))
    assert not [
        name for name in store.redis.hgetall(ledger.keys("meta")) if name.startswith((b"lines:", b"gates"))
    ]


def test_a_job_of_a_limit_is_not_claimed_for_a_slot_that_is_busy(ledger: Ledger) -> None:
    put(ledger)

    found = ledger.scripts.run(ledger.claim_call("advance", "one", 3, new_token(), ahead=3))

    assert (found.leases, found.reason) == ([], "ahead")


@MAKERS
def test_why_says_when_the_next_may_start(ledger: Ledger, make: Any) -> None:
    jobs = [make(ledger) for _ in range(4)]
    claims(ledger)

    found = why(ledger.get(jobs[3]))

    assert found.verdict == "rate_limited"
    assert found.next is not None
    assert START + MINUTE <= found.next <= START + MINUTE + SIXTIETH
    assert "at most 3 in 1 m, and so many have" in found.text
    assert ("key 'api'" in found.text) == (make is keyed)


def test_a_key_may_be_full_before_its_limit_is_reached(ledger: Ledger) -> None:
    fields = {"concurrency_key": "api", "key_rate": packed_rate("3/m")}
    first, second = (ledger.enqueue(NewJob("call", fields=fields)).id for _ in range(2))

    (lease,) = ledger.claim("advance", "one", 9).leases
    assert why(ledger.get(second)).verdict == "key_full"
    ledger.settle(lease, Succeed())

    assert (lease.id, claimed_ids(ledger, 9)) == (first, [second])


def test_a_schedule_stores_the_limit_of_its_task_and_a_fire_brings_it(ledger: Ledger) -> None:
    """That a task has none is stored too, so that its fires take away what code no longer has."""
    schedules, gates = Schedules(ledger), ledger.keys("gates")
    redis: Any = ledger.scripts.redis
    for rate, told in (("3/m", b"3 60000"), (None, None)):
        schedules.put("daily", Task("call", print, rate=rate), [Trigger("default", "0 * * * * ?")])
        due = schedules.get("daily").next_fires["default"]

        Scheduler(Ledgers(ledger.scripts.at(due), ledger.keys.namespace), "one").round()

        assert redis.hget(gates, "rate call") == told


# -- the option -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "packed"),
    [
        ("100/m", "100 60000"),
        ("10/s", "10 1000"),
        ("5/10s", "5 10000"),
        ("1/h", "1 3600000"),
        ("2/1d", "2 86400000"),
    ],
)
def test_a_rate_is_so_many_in_a_period(rate: str, packed: str) -> None:
    assert packed_rate(rate) == packed


@pytest.mark.parametrize(
    "rate", ["", "0/m", "1/ms", "1/2d", "-1/m", "1.5/m", "100", "m", 100, None, "1/0s", "99999999/m"]
)
def test_another_rate_is_refused(rate: Any) -> None:
    with pytest.raises(BadInput, match="so many starts in a period"):
        packed_rate(rate)


def test_a_rate_in_words() -> None:
    assert [rate_in_words(3, ms) for ms in (1_000, 10_000, 60_000, 7_200_000, 1)] == [
        "3 in 1 s",
        "3 in 10 s",
        "3 in 1 m",
        "3 in 2 h",
        "3 in 1 ms",
    ]


@pytest.mark.parametrize(
    ("task", "options", "fields"),
    [
        ({"rate": "3/m"}, {}, {"task_rate": "3 60000"}),
        ({"rate": "3/m"}, {"concurrency_key": "a"}, {"task_rate": "3 60000"}),
        ({"rate": "3/m", "concurrency_key": "a"}, {}, {"key_rate": "3 60000"}),
        ({"rate": "3/m", "concurrency_key": "a"}, {"concurrency_key": "b"}, {"key_rate": "3 60000"}),
        ({}, {"concurrency_key": "b", "rate": "1/s"}, {"key_rate": "1 1000"}),
        ({"rate": "3/m"}, {"concurrency_key": "b", "rate": "1/s"}, {"task_rate": "3 60000", "key_rate": "1 1000"}),
    ],
)  # fmt: skip
def test_a_limit_given_with_a_key_is_the_keys(task: Any, options: Any, fields: Any) -> None:
    found = row_fields(Task("call", print, **task), Options(**options))

    assert {name: value for name, value in found.items() if name.endswith("_rate")} == fields


def test_a_job_alone_has_no_limit_of_its_own() -> None:
    with pytest.raises(BadInput, match="rate '3/m' is given without a concurrency_key"):
        new_job(Task("call", lambda: None), (), {}, Options(rate="3/m"))
