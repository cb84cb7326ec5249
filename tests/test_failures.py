"""What went wrong, gathered by reason, type, instance or trace: counts, first and last sight, the newest jobs."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.lease import failures
from tenure.lease.failures import FailureGroup, FailurePage, Failures
from tenure.lease.filters import Filters
from tenure.lease.ledger import Ledger
from tenure.lease.ledgers import Ledgers
from tenure.lease.listing import list_failed, list_jobs
from tenure.lease.outcome import Fail, Lose, Succeed
from tenure.scripts.errors import BadInput
from tenure.testing import START, Faults
from tenure.workers.fingerprint import failure

from .given import At, Store, dead, running

GONE = failure("KeyError", "shop.orders.sync", "order 7 is gone")
BUSY = failure("TimeoutError", "shop.bank.pay", "no answer in 30 s")
ODD = failure("ValueError", "shop.orders.sync", "odd")


def die(
    ledger: Ledger, told: str = GONE, task: str = "sync", error: str = "KeyError: gone", **fields: Any
) -> str:
    lease = running(ledger, task, fields=fields)
    ledger.settle(lease, Fail(error, permanent=True, failure=told))
    return lease.id


def name(told: str) -> str:
    return told.partition("\n")[0]


def counts(page: FailurePage) -> dict[str, int]:
    return {group.key: group.count for group in page.items}


def all_pages(ledger: Ledger, **options: Any) -> list[FailureGroup]:
    found: list[FailureGroup] = []
    cursor = None
    for _ in range(100):
        page = Failures(ledger).groups(cursor=cursor, **options)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise AssertionError("the pages have no end")


# -- by reason --------------------------------------------------------------------------------------------------------


def test_a_reason_tells_what_where_how_often_since_when_and_which_jobs(ledger: Ledger, at: At) -> None:
    first, second = die(ledger, error="KeyError: order 7 is gone"), die(at(START + 10), end_as="failed")

    (group,) = Failures(ledger).groups().items

    assert (group.by, group.key, group.count) == ("reason", name(GONE), 2)
    assert (group.first_seen, group.last_seen) == (START, START + 10)
    assert (group.exception, group.frame, group.template) == (
        "KeyError",
        "shop.orders.sync",
        "order # is gone",
    )
    assert [(job.id, job.status, job.at) for job in group.members] == [
        (second, "failed", START + 10),
        (first, "dead", START),
    ]
    assert (group.members[1].error, group.members[1].dead_reason) == (
        "KeyError: order 7 is gone",
        "permanent_error",
    )
    assert group.condition == {"fingerprint": name(GONE)}


def test_reasons_stand_by_their_last_sight_and_page_by_page(ledger: Ledger, at: At) -> None:
    for moment, told in enumerate([GONE, BUSY, ODD, GONE]):
        die(at(START + moment), told)

    whole = Failures(ledger).groups()
    by_one = all_pages(ledger, limit=1)

    assert counts(whole) == {name(GONE): 2, name(ODD): 1, name(BUSY): 1}
    assert whole.next_cursor is None
    assert by_one == whole.items
    assert whole.scanned is None


def test_reasons_of_one_instant_are_paged_without_a_gap(ledger: Ledger) -> None:
    made = {
        name(failure("E", "f", kind * 3)) for kind in "abcdefg" if die(ledger, failure("E", "f", kind * 3))
    }

    assert {group.key for group in all_pages(ledger, limit=2)} == made
    assert len(all_pages(ledger, limit=2)) == len(made)


def test_a_reason_that_leaves_between_two_pages_hides_no_other(ledger: Ledger, at: At) -> None:
    ids = [die(at(START + moment), told) for moment, told in enumerate([ODD, BUSY, GONE])]
    first = Failures(ledger).groups(limit=1)
    ledger.retry(ids[2])

    second = Failures(ledger).groups(limit=1, cursor=first.next_cursor)

    assert counts(second) == {name(BUSY): 1}


def test_what_dies_without_an_error_is_told_in_words(ledger: Ledger) -> None:
    ledger.settle(running(ledger, fields={"max_lost": "1"}), Lose("exit code -9"))

    (group,) = Failures(ledger).groups().items

    assert (group.key, group.exception, group.template) == ("killed", None, "its process was killed")


def test_every_cause_that_can_be_a_reason_has_its_words() -> None:
    from tenure.scripts.states import Cause

    never = {Cause.RELEASED, Cause.CANCELED, Cause.PAUSED}
    assert set(failures.FIXED) >= set(Cause) - never


def test_so_many_members_are_shown(ledger: Ledger, at: At) -> None:
    ids = [die(at(START + moment)) for moment in range(5)]

    for members in (0, 1, 2, 100):
        (group,) = Failures(ledger).groups(members=members).items
        assert [job.id for job in group.members] == ids[::-1][:members]
        assert group.count == 5


def test_many_members_are_read_in_several_calls(
    ledger: Ledger, at: At, monkeypatch: pytest.MonkeyPatch, faults: Faults
) -> None:
    for moment, told in enumerate([GONE, BUSY, ODD, GONE, BUSY]):
        die(at(START + moment), told)
    whole = Failures(ledger).groups(members=2)
    monkeypatch.setattr(failures, "ROWS", 2)
    faults.calls.clear()

    assert Failures(ledger).groups(members=2) == whole
    assert faults.calls == ["clusters"] * 4


def test_a_job_whose_row_is_damaged_is_left_out(ledger: Ledger, store: Store) -> None:
    redis: Any = store.redis
    job_id, row = die(ledger), ledger.keys("row", id=die(ledger))
    kept = redis.hgetall(row)
    redis.delete(row)

    (group,) = Failures(ledger).groups().items

    assert [job.id for job in group.members] == [job_id]
    redis.hset(row, mapping=kept)


def test_one_reason_is_asked_for(ledger: Ledger) -> None:
    die(ledger), die(ledger, BUSY)

    assert counts(Failures(ledger).groups(key=name(BUSY))) == {name(BUSY): 1}
    assert Failures(ledger).groups(key="nobody").items == []


def test_a_long_error_is_shown_from_its_beginning(ledger: Ledger) -> None:
    die(ledger, error="ä" * 4000)
    die(ledger, error="x" * 4000)

    (group,) = Failures(ledger).groups().items

    assert {job.error for job in group.members} == {"ä" * 300, "x" * 600}


# -- by type ----------------------------------------------------------------------------------------------------------


def test_types_are_counted_by_the_counters_the_largest_first(ledger: Ledger, at: At) -> None:
    for moment, task in enumerate(["mail", "sync", "sync", "zip"]):
        die(at(START + moment), task=task)
    ledger.settle(running(ledger, "fine"), Succeed())

    page = Failures(ledger).groups("type")

    assert list(counts(page).items()) == [("sync", 2), ("mail", 1), ("zip", 1)]
    assert [(group.first_seen, group.last_seen) for group in page.items] == [
        (START + 1, START + 2),
        (START, START),
        (START + 3, START + 3),
    ]
    assert page.items[0].condition == {"task": "sync"}
    assert all_pages(ledger, by="type", limit=2) == page.items
    assert counts(Failures(ledger).groups("type", key="mail")) == {"mail": 1}


def test_of_types_that_were_not_all_looked_at_only_what_is_known_is_told(
    ledger: Ledger, at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "LOOK", 2)
    monkeypatch.setattr(failures, "LONGEST", 2)
    old = die(ledger, task="old")
    ids = [die(at(START + moment)) for moment in range(1, 5)]

    sync, old_one = Failures(ledger).groups("type", limit=2).items

    assert (sync.count, sync.first_seen, sync.last_seen) == (4, None, START + 4)
    assert [job.id for job in sync.members] == [ids[3], ids[2]]
    assert (old_one.key, old_one.count, old_one.last_seen, old_one.members) == ("old", 1, None, ())
    assert old not in ids


# -- by instance and trace --------------------------------------------------------------------------------------------


def test_instances_are_gathered_from_what_was_looked_at(ledger: Ledger, at: At) -> None:
    for moment, instance in enumerate(["i-1", "i-2", "i-1", "x" * 80, ""]):
        die(at(START + moment), **({"instance": instance} if instance else {}))

    page = Failures(ledger).groups("instance")

    assert counts(page) == {"x" * 80: 1, "i-1": 2, "i-2": 1}
    assert page.scanned == 5
    assert (page.items[1].first_seen, page.items[1].last_seen) == (START, START + 2)
    assert page.items[1].condition == {"instance": "i-1"}
    assert counts(Failures(ledger).groups("instance", key="i-1")) == {"i-1": 2}


def test_a_job_without_a_trace_of_its_own_is_its_own_trace(ledger: Ledger, at: At) -> None:
    root = die(ledger)
    child = die(at(START + 1), trace=root)
    alone = die(at(START + 2))

    page = Failures(ledger).groups("trace")

    assert counts(page) == {alone: 1, root: 2}
    assert [job.id for job in page.items[1].members] == [child, root]


def test_pages_by_instance_end_where_there_is_no_more_room_and_lose_no_job(ledger: Ledger, at: At) -> None:
    made = [f"i-{number % 7}" for number in range(40)]
    for moment, instance in enumerate(made):
        die(at(START + moment), instance=instance)

    pages: list[FailurePage] = []
    cursor = None
    while not pages or cursor:
        pages.append(Failures(ledger).groups("instance", limit=3, cursor=cursor))
        cursor = pages[-1].next_cursor

    assert all(len(page.items) <= 3 for page in pages)
    assert sum(group.count for page in pages for group in page.items) == 40
    assert sum(page.scanned or 0 for page in pages) >= 40


def test_a_page_by_instance_looks_at_a_bounded_number_of_jobs(
    ledger: Ledger, at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "LOOK", 4)
    monkeypatch.setattr(failures, "LONGEST", 2)
    for moment in range(9):
        die(at(START + moment), instance="i-1")

    page = Failures(ledger).groups("instance", limit=2)

    assert page.next_cursor
    assert page.scanned is not None
    assert counts(page)["i-1"] <= page.scanned <= 6


# -- what is refused, what is not there -------------------------------------------------------------------------------


@pytest.mark.parametrize("by", failures.BY)
def test_where_nothing_went_wrong_there_is_nothing(ledger: Ledger, by: str) -> None:
    assert Failures(ledger).groups(by) == FailurePage([], None, None if by in ("reason", "type") else 0)


@pytest.mark.parametrize(
    "options",
    [
        {"by": "colour"},
        {"limit": 0},
        {"limit": 101},
        {"members": -1},
        {"members": 101},
        {"members": True},
        {"cursor": "mine"},
        {"cursor": "\x00"},
        {"by": "type", "cursor": "bWluZQ"},
        {"by": "instance", "cursor": "bWluZQ"},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(ledger: Ledger, options: dict[str, Any]) -> None:
    dead(ledger)

    with pytest.raises(BadInput):
        Failures(ledger).groups(**options)


def test_to_look_changes_nothing(ledger: Ledger, store: Store) -> None:
    die(ledger, instance="i-1")

    with store.unchanged():
        for by in failures.BY:
            Failures(ledger).groups(by)


# -- the filters beneath ----------------------------------------------------------------------------------------------


def ids(ledger: Ledger, **filters: Any) -> list[str]:
    """By the list of jobs and by that of failed ones, which must agree."""
    listed = [job.id for job in list_jobs(ledger, Filters(failed=True, **filters)).items]
    assert [job.id for job in list_failed(ledger, Filters(**filters)).items] == listed
    return listed


def test_failed_jobs_are_filtered_by_what_they_died_of_when_and_in_which_words(
    ledger: Ledger, at: At
) -> None:
    one = die(ledger, error="ValueError: No Such Row")
    two = die(at(START + 10), BUSY, error="TimeoutError: slow", end_as="failed")
    three = die(at(START + 20), task="mail", error="ValueError: no such shop")
    ledger.settle(running(ledger), Succeed())

    assert ids(ledger) == [three, two, one]
    assert ids(ledger, fingerprint=name(GONE)) == [three, one]
    assert ids(ledger, error="no such") == [three, one]
    assert ids(ledger, error="no such", fingerprint=name(BUSY)) == []
    assert ids(ledger, status="failed") == [two]
    assert ids(ledger, ended_from=START + 10) == [three, two]
    assert ids(ledger, ended_to=START + 10) == [one]
    assert ids(ledger, ended_from=START + 1, ended_to=START + 20) == [two]
    assert ids(ledger, fingerprint=name(GONE), ended_to=START + 20) == [one]
    assert ids(ledger, fingerprint=name(GONE), tasks=["mail"]) == [three]
    assert ids(ledger, created_to=START + 20, fingerprint=name(GONE)) == [one]


def test_error_words_are_no_ids_and_no_keys(ledger: Ledger) -> None:
    lease = running(ledger, idempotency_key="order-7")
    ledger.settle(lease, Fail("ValueError: x", permanent=True))

    assert ids(ledger, error="order-7") == []
    assert ids(ledger, error=lease.id) == []


def test_a_job_that_ended_late_is_found_by_when_it_was_made(ledger: Ledger, at: At) -> None:
    """The list of a fingerprint stands by when jobs ended, and must not be entered at when they were made."""
    lease = running(ledger)
    at(START + 50).settle(lease, Fail("x", permanent=True, failure=GONE))

    assert ids(ledger, fingerprint=name(GONE), created_to=START + 1) == [lease.id]


@pytest.mark.parametrize(
    "filters", [{"fingerprint": "A B"}, {"fingerprint": ""}, {"error": ""}, {"error": "x" * 201}]
)
def test_filters_that_make_no_sense_are_refused(filters: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        Filters(**filters)


@pytest.mark.parametrize(
    ("confirmed", "code"), [(None, "OUTCOME_UNKNOWN"), (True, "OUTCOME_HAPPENED"), (False, None)]
)
def test_judged_jobs_say_why_they_could_not_be_retried(
    ledger: Ledger, confirmed: bool | None, code: str | None
) -> None:
    from .given import unknown_outcome

    lease = unknown_outcome(ledger)
    if confirmed is not None:
        ledger.confirm(lease.id, confirmed)

    (job,) = list_failed(ledger, Filters(), judged=True).items

    assert (job.id, job.refused) == (lease.id, code)


def test_a_cursor_goes_on_with_the_groups_it_came_from(ledger: Ledger, ledgers: Ledgers) -> None:
    for told in (GONE, BUSY, ODD):
        die(ledger, told, task=f"of-{name(told)[:4]}", instance=name(told))
    ways = ("reason", "type", "instance", "trace")
    cursors = {by: Failures(ledger).groups(by, limit=1).next_cursor for by in ways}
    assert all(cursors.values())

    for by in ways:
        for of, cursor in cursors.items():
            if of == by:
                assert Failures(ledger).groups(by, cursor=cursor).items
                continue
            with pytest.raises(BadInput, match="is of another list"):
                Failures(ledger).groups(by, cursor=cursor)
        with pytest.raises(BadInput, match="is of another list"):
            Failures(ledgers.of("other")).groups(by, cursor=cursors[by])
        with pytest.raises(BadInput, match="is of another list"):
            Failures(ledger).groups(by, key="a", cursor=cursors[by])
