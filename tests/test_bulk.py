"""`app.enqueue_many`: many jobs, few round trips, and nothing half done that cannot be sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tenure import Job, Tenure
from tenure.lease import bulk
from tenure.lease.bulk import CALL_BYTES, CALL_JOBS, TRIP_JOBS, enqueue_all, portions
from tenure.lease.ids import new_id
from tenure.lease.ledger import NewJob
from tenure.lease.ledgers import Ledgers
from tenure.scripts.errors import BadInput, KeyReused, StoreFull, StoreUnreachable, TenureError
from tenure.testing import Faults, InlineWorker

from .given import Store


@pytest.fixture
def rebuild(app: Tenure) -> Any:
    @app.task("invoices.rebuild")
    def rebuild(customer: int) -> int:
        return customer

    return rebuild


def made(answers: list[Job[Any] | TenureError]) -> list[Job[Any]]:
    jobs = [answer for answer in answers if isinstance(answer, Job)]
    assert len(jobs) == len(answers)
    return jobs


def test_each_call_becomes_a_job_in_the_order_of_the_calls(
    app: Tenure, worker: InlineWorker, rebuild: Any
) -> None:
    jobs = made(app.enqueue_many(rebuild.call(customer) for customer in range(250)))

    assert [ran.id for ran in worker.run()] == [job.id for job in jobs]
    assert [job.result() for job in jobs] == list(range(250))
    assert {job.created for job in jobs} == {True}
    assert {job.durability for job in jobs} == {app.store.facts.durability}


def test_each_call_has_options_and_a_tenant_of_its_own(app: Tenure, rebuild: Any) -> None:
    calls = [
        rebuild.call(1),
        rebuild.using(tenant="north", priority=2).call(2),
        rebuild.using(tenant="south", after="1h").call(3),
        rebuild.using(tenant="north").call(4),
    ]

    jobs = made(app.enqueue_many(calls))

    assert [job.id for job in jobs] == [call.id for call in calls]
    assert [job.tenant for job in jobs] == ["default", "north", "south", "north"]
    assert [job.get().priority for job in jobs] == [5, 2, 5, 5]
    assert jobs[2].get().run_at - jobs[2].get().created_at == 3_600_000


def test_no_calls_are_no_jobs_and_open_nothing() -> None:
    assert Tenure().enqueue_many([]) == []


def test_a_key_that_has_a_job_answers_that_job(app: Tenure, rebuild: Any) -> None:
    first = rebuild.using(idempotency_key="seven").enqueue(7)

    known, new, same = made(
        app.enqueue_many(
            [
                rebuild.using(idempotency_key="seven").call(7),
                rebuild.using(idempotency_key="eight").call(8),
                rebuild.using(idempotency_key="eight").call(8),
            ]
        )
    )

    assert (known.id, known.created) == (first.id, False)
    assert (new.created, same.created) == (True, False)
    assert new.id == same.id


def test_one_that_the_ledger_refuses_stands_in_the_answer_and_the_others_are_made(
    app: Tenure, rebuild: Any
) -> None:
    keyed = rebuild.using(idempotency_key="seven")

    before, refused, after = app.enqueue_many([keyed.call(7), keyed.call(8), rebuild.call(9)])

    assert isinstance(refused, KeyReused)
    assert [job.created for job in made([before, after])] == [True, True]


@pytest.mark.parametrize(
    "bad",
    [
        lambda rebuild: rebuild.call(1, 2),
        lambda rebuild: rebuild.call(object()),
        lambda rebuild: rebuild.call("x" * 1_000_000),
        lambda rebuild: rebuild.using(tenant="no:slug").call(1),
        lambda rebuild: rebuild.using(priority=11).call(1),
        lambda rebuild: rebuild.using(after=-1).call(1),
        lambda rebuild: rebuild.using(idempotency_key="").call(1),
        lambda rebuild: rebuild,
        lambda rebuild: Tenure().task("other")(lambda: None).call(),
    ],
)
def test_a_bad_call_among_good_ones_is_refused_before_anything_is_sent(
    app: Tenure, store: Store, rebuild: Any, bad: Callable[[Any], Any]
) -> None:
    def calls() -> Any:
        yield from [rebuild.call(customer) for customer in range(3 * TRIP_JOBS)]
        yield bad(rebuild)

    with store.unchanged(), pytest.raises(BadInput):
        app.enqueue_many(calls())


def test_a_tenant_that_is_no_slug_is_refused_before_anything_is_sent(ledgers: Ledgers, store: Store) -> None:
    with store.unchanged(), pytest.raises(BadInput, match="slug"):
        enqueue_all(ledgers, [("acme", NewJob("report")), ("a*", NewJob("report"))])


def test_the_same_calls_sent_again_are_the_same_jobs(app: Tenure, rebuild: Any) -> None:
    calls = [rebuild.call(customer) for customer in range(5)]

    first, again = made(app.enqueue_many(calls)), made(app.enqueue_many(calls))

    assert first == again
    assert app.ledger().counts() == {("invoices.rebuild", "pending"): 5}


@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5])
def test_what_was_cut_short_is_completed_by_sending_it_again(
    ledgers: Ledgers, faults: Faults, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    monkeypatch.setattr(bulk, "TRIP_JOBS", 20)
    monkeypatch.setattr(bulk, "CALL_JOBS", 10)
    jobs = [(tenant, NewJob("report")) for tenant in ("acme", "acme", "north") for _ in range(17)]
    faults.lose_reply("enqueue", nth)
    with pytest.raises(StoreUnreachable):
        enqueue_all(ledgers, jobs)

    answers = enqueue_all(ledgers, jobs)

    assert [getattr(answer, "id", None) for answer in answers] == [job.id for _, job in jobs]
    assert ledgers.of("acme").counts() == {("report", "pending"): 34}
    assert ledgers.of("north").counts() == {("report", "pending"): 17}


def test_a_store_that_refuses_a_part_is_an_error_and_the_rest_is_told_to_the_index(
    ledgers: Ledgers, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full server, say: nobody may think those jobs were made, and those that were must be found."""
    read = type(ledgers.scripts)._read

    def full(scripts: Any, call: Any, reply: Any) -> Any:
        answer = read(scripts, call, reply)
        return StoreFull("full") if call.script == "enqueue" and "{north}" in call.home else answer

    monkeypatch.setattr(type(ledgers.scripts), "_read", full)
    with pytest.raises(StoreFull):
        enqueue_all(ledgers, [("north", NewJob("report")), ("acme", NewJob("report"))])

    assert ledgers.index.take("due:advance", 10).tenants == ["acme"]


def test_a_thousand_jobs_are_one_round_trip_of_short_calls(ledgers: Ledgers, faults: Faults) -> None:
    trips: list[int] = []
    trip = type(ledgers.scripts)._trip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            type(ledgers.scripts), "_trip", lambda self, sent: trips.append(len(sent)) or trip(self, sent)
        )
        ledgers.of("acme").enqueue(NewJob("report"))
        trips.clear()
        enqueue_all(ledgers, [("acme", NewJob("report")) for _ in range(TRIP_JOBS)])

    assert trips == [TRIP_JOBS // CALL_JOBS]


def test_many_tenants_are_told_to_the_sweep_in_one_round_trip(ledgers: Ledgers, faults: Faults) -> None:
    enqueue_all(ledgers, [(f"t{number}", NewJob("report")) for number in range(100)])

    assert faults.calls == ["index_register"] * 100 + ["enqueue"] * 100 + ["index_put"] * 100


@pytest.mark.parametrize(
    ("sizes", "portioned"),
    [
        ([], []),
        ([1, 1, 1, 1, 1], [[1, 1, 1], [1, 1]]),
        ([4, 4, 4], [[4, 4], [4]]),
        ([8, 1, 7], [[8], [1, 7]]),
        ([99, 1, 99], [[99], [1], [99]]),
    ],
)
def test_portions_are_cut_by_number_and_by_size(sizes: list[int], portioned: list[list[int]]) -> None:
    assert list(portions(sizes, 3, 8, lambda size: size)) == portioned


def test_large_arguments_make_more_calls(ledgers: Ledgers, faults: Faults) -> None:
    enqueue_all(ledgers, [("acme", NewJob("report", b"x" * (CALL_BYTES // 2))) for _ in range(6)])

    assert faults.calls.count("enqueue") == 3


def test_ids_grow_in_the_order_they_are_made_also_when_the_clock_goes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = [new_id() for _ in range(2_000)]
    monkeypatch.setattr("tenure.lease.ids.time.time_ns", lambda: 1_000_000_000)
    ids += [new_id() for _ in range(2_000)]

    assert ids == sorted(set(ids))
    assert {len(one) for one in ids} == {26}


def test_it_has_an_async_twin(app: Tenure, rebuild: Any) -> None:
    jobs = made(asyncio.run(app.aenqueue_many([rebuild.call(1), rebuild.call(2)])))

    assert [job.created for job in jobs] == [True, True]
