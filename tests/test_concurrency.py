"""Concurrency keys: at most so many at a time, nobody else kept waiting, and who was not heard of holds on."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.app import Tenure
from tenure.lease.jobs import DUE
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.outcome import Fail, GiveBack, NextChunk, Stopped, Succeed
from tenure.lease.requests import Options, new_job
from tenure.lease.tasks import Task
from tenure.lease.why import why
from tenure.scripts.errors import BadInput, StaleFence
from tenure.testing import START

from .given import At, Store, claim, claimed_ids

NEVER = (1 << 42) - 1
KEYED = ("waiters", "hidden", "share", "holders", "lingering")


def put(ledger: Ledger, key: str | None = "shop", limit: int = 1, pool: str = "advance", **more: Any) -> str:
    """Make a job that needs a key."""
    fields = {"concurrency_key": key, "concurrency_limit": str(limit)} if key else {}
    return ledger.enqueue(NewJob("sync", pool=pool, fields=fields | more.pop("fields", {}), **more)).id


def exclusive(ledger: Ledger, instance: str) -> str:
    return ledger.enqueue(NewJob("sync", fields={"instance": instance, "exclusive": "1"})).id


def left_of_keys(ledger: Ledger, store: Store) -> list[str]:
    """The store's keys that only concurrency keys need."""
    starts = tuple(ledger.keys(family, line="", pool="", key="").rstrip(":") for family in KEYED)
    return [name for name in store.dump() if name.startswith(starts)]


# -- at most so many --------------------------------------------------------------------------------------------------


def test_one_job_of_a_key_runs_at_a_time_and_the_others_keep_nobody_waiting(ledger: Ledger) -> None:
    first, second, third = put(ledger), put(ledger), put(ledger)
    free = put(ledger, key=None)
    other = put(ledger, key="another shop")

    assert claimed_ids(ledger, 9) == sorted([first, free, other])
    assert claimed_ids(ledger, 9) == []
    assert {job.id for job in ledger.list(status="pending").items} == {second, third}


@pytest.mark.parametrize(
    "end",
    [Succeed(), Fail("", delay_ms=60_000), Fail("never", permanent=True), NextChunk(b"c", delay_ms=1), GiveBack()],
    ids=lambda end: type(end).__name__,
)  # fmt: skip
def test_the_end_of_an_attempt_lets_the_next_one_in(ledger: Ledger, end: Any) -> None:
    first, second = put(ledger), put(ledger)
    lease = claim(ledger)

    ledger.settle(lease, end)

    expected = first if isinstance(end, GiveBack) else second
    assert claimed_ids(ledger, 9) == [expected]


def test_a_lease_that_ended_lets_the_next_one_in(ledger: Ledger, at: At) -> None:
    put(ledger)
    lease = claim(ledger)
    second = put(ledger, fields={"priority": "0"})

    assert claimed_ids(at(lease.expires_at), 9) == []
    at(lease.expires_at).reap()

    assert claimed_ids(at(lease.expires_at), 9) == [second]


def test_a_key_counts_over_all_pools_and_each_pool_shows_its_own_first(ledger: Ledger) -> None:
    here, there = put(ledger), put(ledger, pool="outbound")
    lease = claim(ledger, pool="outbound")

    assert lease.id == there
    assert claimed_ids(ledger, 9) == []
    ledger.settle(lease, Succeed())
    assert claimed_ids(ledger, 9) == [here]


def test_as_many_as_the_limit_says_run_side_by_side_in_the_order_of_the_queue(ledger: Ledger) -> None:
    ids = [put(ledger, limit=3) for _ in range(5)]
    urgent = put(ledger, limit=3, fields={"priority": "0"})

    assert claimed_ids(ledger, 9) == [urgent, *ids[:2]]


def test_more_than_a_line_shows_at_once_still_come_in_order(ledger: Ledger) -> None:
    ids = [put(ledger, limit=100) for _ in range(40)]
    free = put(ledger, key=None)

    found: list[str] = []
    while ids_now := claimed_ids(ledger, 100):
        found += ids_now

    assert found == [*ids, free]


def test_the_last_word_on_a_limit_counts_and_a_lower_one_lets_the_holders_finish(ledger: Ledger) -> None:
    waiting = [put(ledger) for _ in range(4)]
    assert claimed_ids(ledger, 9) == waiting[:1]

    put(ledger, limit=3)
    held = ledger.claim("advance", "one", 9).leases
    assert [lease.id for lease in held] == waiting[1:3]

    put(ledger, limit=1)
    assert claimed_ids(ledger, 9) == []
    ledger.settle(held[0], Succeed())
    ledger.settle(held[1], Succeed())
    assert claimed_ids(ledger, 9) == [], "one of the three is still running"


def test_an_exclusive_job_runs_alone_in_its_instance(ledger: Ledger) -> None:
    first, second = exclusive(ledger, "order-7"), exclusive(ledger, "order-7")
    other = exclusive(ledger, "order-8")
    named = put(ledger, key="order-7")

    lease, *_ = ledger.claim("advance", "one", 9).leases
    assert claimed_ids(ledger, 9) == []
    assert {job.id for job in ledger.list(status="running").items} == {first, other, named}
    ledger.settle(lease, Succeed())

    assert claimed_ids(ledger, 9) == [second]


def test_the_first_of_each_priority_is_shown_with_its_own_due_time(ledger: Ledger, at: At) -> None:
    put(ledger, when="+5000")
    put(ledger, when="+3000")
    urgent = put(ledger, when="+4000", fields={"priority": "0"})

    assert claimed_ids(at(START + 2_999), 9) == []
    assert ledger.index.take(DUE + "advance", 0).next_due_ms == START + 3_000
    assert claimed_ids(at(START + 4_000), 9) == [urgent]


def test_who_leaves_the_line_is_followed_by_the_next(ledger: Ledger) -> None:
    first, second, third = put(ledger), put(ledger), put(ledger)

    ledger.cancel(first)
    ledger.reschedule(second, when="+60000")

    assert claimed_ids(ledger, 9) == [third]


def test_a_job_retried_comes_back_behind_its_key_with_its_limit(ledger: Ledger) -> None:
    jobs = [put(ledger, limit=2) for _ in range(3)]
    for job_id in jobs:
        ledger.cancel(job_id)

    for job_id in jobs:
        ledger.retry(job_id)

    assert claimed_ids(ledger, 9) == jobs[:2]


# -- a holder that was not heard of -----------------------------------------------------------------------------------


def test_a_canceled_job_holds_its_key_until_its_worker_has_stopped(ledger: Ledger) -> None:
    put(ledger)
    second = put(ledger)
    lease = claim(ledger)

    ledger.cancel(lease.id)
    assert claimed_ids(ledger, 9) == [], "its worker may still be at work"
    assert "taken from it, and it has not said that it has stopped" in why(ledger.get(second)).text
    ledger.settle(lease, Stopped())

    assert claimed_ids(ledger, 9) == [second]


def test_a_worker_that_never_says_so_holds_it_until_its_lease_ends(ledger: Ledger, at: At) -> None:
    put(ledger)
    second = put(ledger)
    lease = claim(ledger)
    ledger.renew([lease])
    ledger.cancel(lease.id)

    at(lease.expires_at - 1).reap()
    assert claimed_ids(at(lease.expires_at - 1), 9) == []
    assert ledger.index.take("reap", 0).next_due_ms == lease.expires_at
    at(lease.expires_at).reap()

    assert claimed_ids(at(lease.expires_at), 9) == [second]


def test_the_same_job_retried_waits_for_its_own_old_worker(ledger: Ledger) -> None:
    put(ledger)
    lease = claim(ledger)
    ledger.cancel(lease.id)
    ledger.retry(lease.id)

    assert claimed_ids(ledger, 9) == []
    assert why(ledger.get(lease.id)).verdict == "key_full"
    ledger.settle(lease, Stopped())
    again = claim(ledger)
    ledger.settle(lease, Stopped())

    assert again.id == lease.id
    put(ledger)
    assert claimed_ids(ledger, 9) == [], "what the old one says again does not free the new one's place"


def test_what_is_refused_does_not_free_the_key(ledger: Ledger, store: Store) -> None:
    put(ledger)
    put(ledger)
    lease = claim(ledger)
    ledger.cancel(lease.id)

    with store.unchanged(), pytest.raises(StaleFence):
        ledger.settle(lease, Succeed())
    assert claimed_ids(ledger, 9) == []


@pytest.mark.parametrize("state", ["running", "pending", "gone"])
def test_that_it_stopped_is_no_word_on_a_job_that_nobody_took_away(
    ledger: Ledger, store: Store, state: str
) -> None:
    put(ledger)
    lease = claim(ledger)
    if state == "pending":
        ledger.settle(lease, Fail("no luck"))

    with store.unchanged():
        (refused,), news = ledger.scripts.run(
            ledger.settle_call([("nobody" if state == "gone" else lease.id, lease.fence, Stopped())])
        )
    assert (refused, news) == (None, [])


# -- nobody has to be asked in vain -----------------------------------------------------------------------------------


def test_a_full_key_asks_for_no_visit_and_its_end_does(ledger: Ledger) -> None:
    put(ledger)
    put(ledger)
    put(ledger, pool="outbound")
    lease = claim(ledger)
    assert ledger.claim("advance", "one").reason == "behind_keys"
    assert ledger.claim("outbound", "one").reason == "behind_keys"
    assert (
        ledger.index.take(DUE + "advance", 9).tenants == ledger.index.take(DUE + "outbound", 9).tenants == []
    )

    ledger.settle(lease, Succeed())

    assert (
        ledger.index.take(DUE + "advance", 9).tenants
        == ledger.index.take(DUE + "outbound", 9).tenants
        == ["acme"]
    )


@pytest.mark.parametrize("want", [1, 9])
def test_a_claim_that_has_filled_a_key_asks_for_no_visit_for_the_rest_of_it(
    ledger: Ledger, want: int
) -> None:
    """Also not for those of other priorities, which the line showed while the key was free."""
    first = put(ledger, fields={"priority": "0"})
    put(ledger)
    put(ledger, fields={"priority": "9"})

    found = ledger.claim("advance", "one", want)

    assert [lease.id for lease in found.leases] == [first]
    assert found.news.due_ms == NEVER
    assert ledger.index.take(DUE + "advance", 9).tenants == []


def test_of_many_holders_some_are_named(ledger: Ledger) -> None:
    for _ in range(20):
        put(ledger, limit=20)
    for _ in range(4):
        ledger.claim("advance", "one", 9)
    last = put(ledger, limit=20)

    assert why(ledger.get(last)).text.count("on one since") == 16


def test_what_comes_behind_a_full_key_wakes_nobody(ledger: Ledger) -> None:
    put(ledger)
    claim(ledger)
    assert ledger.claim("advance", "one").reason == "no_jobs"

    put(ledger)

    assert ledger.index.take(DUE + "advance", 9).tenants == []
    assert [job.status for job in ledger.list(status="pending").items] == ["pending"]


def test_for_a_slot_that_is_busy_nobody_claims_what_needs_a_key(ledger: Ledger) -> None:
    keyed, free = put(ledger), put(ledger, key=None)

    def ahead(want: int, ahead: int) -> tuple[list[str], str]:
        found = ledger.scripts.run(ledger.claim_call("advance", "one", want, new_token(), ahead=ahead))
        return [lease.id for lease in found.leases], found.reason

    assert ahead(2, 2) == ([free], "")
    assert ahead(2, 2) == ([], "ahead")
    assert ahead(2, 1) == ([keyed], "")


def test_nothing_is_left_of_a_key_that_nobody_needs(ledger: Ledger, store: Store) -> None:
    for limit in (1, 4):
        ids = [put(ledger, limit=limit), put(ledger, limit=limit), exclusive(ledger, "order-7")]
        leases = ledger.claim("advance", "one", 9).leases
        assert left_of_keys(ledger, store)
        ledger.cancel(leases[0].id)
        ledger.settle(leases[0], Stopped())
        for lease in leases[1:]:
            ledger.settle(lease, Succeed())
        for job_id in ids:
            if ledger.get(job_id).status == "pending":
                ledger.cancel(job_id)

        assert left_of_keys(ledger, store) == []


def test_an_entry_that_does_not_follow_from_its_row_is_put_right(ledger: Ledger, store: Store) -> None:
    """I43: damage may cost a visit, never a job."""
    first, second = put(ledger), put(ledger)
    redis: Any = ledger.scripts.redis
    lease = claim(ledger)
    score = redis.zscore(ledger.keys("hidden", pool="advance"), second)
    redis.zadd(ledger.keys("queue", line="advance"), {second: score})

    assert claimed_ids(ledger, 9) == []
    ledger.settle(lease, Succeed())

    assert lease.id == first
    assert claimed_ids(ledger, 9) == [second]


# -- the options ------------------------------------------------------------------------------------------------------


def run(customer: int = 1) -> None: ...


def fields_of(task: dict[str, Any], **options: Any) -> dict[str, Any]:
    fields = new_job(Task("sync", run, **task), (), {}, Options(**options)).fields
    return {
        name: value
        for name, value in fields.items()
        if name in ("concurrency_key", "concurrency_limit", "exclusive")
    }


@pytest.mark.parametrize(
    ("task", "options", "fields"),
    [
        ({}, {}, {}),
        ({}, {"concurrency_key": "a"}, {"concurrency_key": "a"}),
        ({"concurrency_key": "a", "concurrency_limit": 4}, {}, {"concurrency_key": "a", "concurrency_limit": "4"}),
        ({"concurrency_key": "a"}, {"concurrency_key": "b", "concurrency_limit": 2},
         {"concurrency_key": "b", "concurrency_limit": "2"}),
        ({"concurrency_limit": 4}, {"concurrency_key": "b"}, {"concurrency_key": "b", "concurrency_limit": "4"}),
        ({"concurrency_limit": 4}, {}, {}),
        ({"exclusive": True}, {"instance": "i"}, {"exclusive": "1"}),
        ({"exclusive": True}, {"exclusive": False, "concurrency_key": "a"}, {"concurrency_key": "a"}),
        ({}, {"exclusive": True, "instance": "i"}, {"exclusive": "1"}),
    ],
)  # fmt: skip
def test_a_job_has_the_key_of_its_task_or_one_of_its_own(
    task: dict[str, Any], options: dict[str, Any], fields: dict[str, Any]
) -> None:
    assert fields_of(task, **options) == fields


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ({"concurrency_key": "a"}, {"exclusive": True, "instance": "i"}, "a job has one of the two"),
        ({"exclusive": True}, {"concurrency_key": "a", "instance": "i"}, "a job has one of the two"),
        ({"exclusive": True, "concurrency_key": "a"}, {}, "a job has one of the two"),
        ({"exclusive": True}, {}, "exclusive in its instance, and has none"),
        ({}, {"concurrency_limit": 2}, "without a concurrency_key"),
        ({}, {"concurrency_key": ""}, "1 to 200 bytes"),
        ({}, {"concurrency_key": "é" * 101}, "1 to 200 bytes"),
        ({"concurrency_key": 7}, {}, "1 to 200 bytes"),
        ({"concurrency_limit": 0}, {}, "from 1 to"),
        ({}, {"concurrency_key": "a", "concurrency_limit": True}, "from 1 to"),
        ({}, {"exclusive": "yes"}, "is not a bool"),
    ],
)  # fmt: skip
def test_an_option_that_breaks_a_rule_is_refused_before_anything_is_sent(
    task: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        fields_of(task, **options)


def test_the_options_reach_the_ledger_and_the_view(app: Tenure) -> None:
    handle = app.task("sync", concurrency_key="shop", concurrency_limit=2)(run)

    named = app.jobs.get(handle.using(concurrency_key="x" * 200).enqueue(1).id)
    alone = app.jobs.get(
        app.task("alone", exclusive=True)(lambda: None).using(instance="order-7").enqueue().id
    )

    assert (named.concurrency_key, named.exclusive) == ("x" * 200, False)
    assert (alone.concurrency_key, alone.exclusive) == (None, True)
