"""Pages of jobs: what a filter finds, in which order; paging neither skips nor repeats while the ledger changes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tenure import Retry, Tenure
from tenure.lease import listing
from tenure.lease.filters import Filters
from tenure.lease.holds import Holds
from tenure.lease.jobs import JobView, Page
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.listing import list_jobs, pending_pools
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.retention import Retention
from tenure.scripts.errors import BadInput
from tenure.scripts.states import State
from tenure.testing import START, InlineWorker

from .given import At, Store, paused, place, running

DAY_MS = 86_400_000
TASKS, INSTANCES = ("mail", "report", "sync"), ("i-1", "i-2", "x" * 80)


@pytest.fixture
def full(ledger: Ledger) -> Ledger:
    """Jobs in every state, of several tasks, pools, priorities and contexts, some made in the same millisecond."""
    fill(ledger, random.Random(7), 120)
    return ledger.at(START + 120)


def fill(ledger: Ledger, chance: random.Random, many: int) -> None:
    for at in range(many):
        moment = ledger.at(START + at // 3)
        fields: dict[str, Any] = {
            "priority": str(chance.randrange(10)),
            "instance": chance.choice((*INSTANCES, "")),
            "node": chance.choice(("n-1", "")),
            "record": chance.choice(("order:1", "order:2", "")),
            "labels": chance.choice(("team=a\ntier=1", "team=b", "")),
            "trace": chance.choice(("t-1", "")),
            "background": chance.choice(("1", "")),
        }
        job = NewJob(
            chance.choice(TASKS),
            pool=chance.choice(("advance", "outbound")),
            when=f"+{chance.randrange(5) * 60_000}",
            idempotency_key=f"key-{at}",
            fields={name: value for name, value in fields.items() if value},
        )
        moment.enqueue(job)
        if at % 4 == 0:
            change(moment, chance)


def change(ledger: Ledger, chance: random.Random) -> None:
    """Take jobs that are due, and end them one way or another."""
    for lease in ledger.claim(chance.choice(("advance", "outbound")), "w", 3).leases:
        match chance.randrange(6):
            case 0:
                ledger.settle(lease, Succeed())
            case 1:
                ledger.settle(lease, Fail(f"ValueError: No Such Row {lease.id[-2:]}", permanent=True))
            case 2:
                ledger.cancel(lease.id)
            case 3:
                ledger.settle(lease, Fail("TimeoutError: too slow", delay_ms=120_000))
            case 4:
                ledger.settle(lease, NextChunk(b"c"))
            case _:
                pass


def everything(ledger: Ledger) -> list[JobView]:
    redis, keys = ledger.scripts.redis, ledger.keys
    names: Any = redis.scan_iter(match=f"{keys('row', id='*')}", count=1000)
    ids = sorted(name.decode().rpartition(":")[2] for name in names)
    return [job for at in range(0, len(ids), 100) for job in ledger.get_many(ids[at : at + 100])]


def pages(ledger: Ledger, filters: Filters, limit: int) -> Iterator[Page]:
    cursor = None
    for _ in range(1_000):
        page = list_jobs(ledger, filters, limit=limit, cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
    raise AssertionError("the pages do not end")


def ids(ledger: Ledger, limit: int = 7, **filters: Any) -> list[str]:
    return [job.id for page in pages(ledger, Filters(**filters), limit) for job in page.items]


def wanted(job: JobView, filters: Filters) -> bool:
    """What a filter means, in plain words."""
    error = job.attempts[-1].error if job.attempts else None
    return (
        filters.status in (None, job.status)
        and (filters.tasks is None or job.task in filters.tasks)
        and filters.instance in (None, job.instance)
        and filters.node in (None, job.node)
        and filters.trace in (None, job.trace)
        and filters.record in (None, job.record)
        and filters.labels.items() <= job.labels.items()
        and (filters.created_from is None or job.created_at >= filters.created_from)
        and (filters.created_to is None or job.created_at < filters.created_to)
        and (job.background or not filters.background)
        and (
            filters.q is None
            or filters.q in (job.id, job.idempotency_key)
            or (job.status in ("dead", "failed") and filters.q.lower() in (error or "").lower())
        )
    )


def some_filters(chance: random.Random) -> Filters:
    choices: dict[str, Any] = {
        "status": chance.choice(tuple(State)),
        "tasks": chance.sample(TASKS, chance.randrange(1, 3)),
        "instance": chance.choice(INSTANCES),
        "node": "n-1",
        "trace": "t-1",
        "record": ("order", chance.choice("12")),
        "labels": chance.choice(({"team": "a"}, {"team": "a", "tier": "1"}, {"team": "b"}, {"team": "c"})),
        "q": chance.choice(("no such row", "SLOW", "key-7", "nothing of the kind")),
        "created_from": START + chance.randrange(25),
        "created_to": START + 25 + chance.randrange(25),
        "background": True,
    }
    names = chance.sample(sorted(choices), chance.randrange(4))
    return Filters(**{name: choices[name] for name in names})


def test_every_filter_finds_what_it_means_and_nothing_twice(full: Ledger) -> None:
    chance, jobs = random.Random(11), everything(full)
    for _ in range(80):
        filters = some_filters(chance)

        found = [job for page in pages(full, filters, chance.choice((1, 7, 100))) for job in page.items]

        expected = {job.id for job in jobs if wanted(job, filters)}
        assert sorted(job.id for job in found) == sorted(expected), filters


@pytest.mark.parametrize("look", [1, 2, 5])
def test_short_slices_find_the_same(full: Ledger, monkeypatch: pytest.MonkeyPatch, look: int) -> None:
    monkeypatch.setattr(listing, "LOOK", look)
    monkeypatch.setattr(listing, "CALLS", 2)
    monkeypatch.setattr(listing, "SLICE", look)
    chance, jobs = random.Random(look), everything(full)
    for _ in range(25):
        filters = some_filters(chance)

        found = [job.id for page in pages(full, filters, 5) for job in page.items]

        assert sorted(found) == sorted(job.id for job in jobs if wanted(job, filters)), filters


def test_jobs_stand_newest_first_and_pending_ones_by_due_time(full: Ledger) -> None:
    jobs = everything(full)
    for filters in (
        Filters(),
        Filters(tasks=TASKS[:2]),
        Filters(instance="i-1"),
        Filters(labels={"team": "a"}),
    ):
        found = [job.created_at for page in pages(full, filters, 7) for job in page.items]
        assert found == sorted(found, reverse=True)
    for status in (State.DEAD, State.CANCELED, State.SUCCEEDED):
        ended = [job.finished_at for page in pages(full, Filters(status=status), 7) for job in page.items]
        assert ended == sorted(ended, key=lambda at: at or 0, reverse=True)
    for shared in ({}, {"instance": "i-1"}, {"tasks": ["mail"]}, {"created_to": START + 20}):
        filters = Filters(status="pending", **shared)
        found_due = [(job.run_at, job.id) for page in pages(full, filters, 7) for job in page.items]
        assert found_due == sorted((job.run_at, job.id) for job in jobs if wanted(job, filters))
    running = ids(full, status="running")
    assert running == sorted(running, reverse=True)


def test_one_filter_looks_at_a_page_and_no_more(full: Ledger) -> None:
    for filters in (
        Filters(),
        Filters(status="pending"),
        Filters(status="succeeded"),
        Filters(status="dead"),
        Filters(tasks=["mail"]),
        Filters(instance="i-1"),
        Filters(trace="t-1"),
        Filters(created_to=START + 30),
    ):
        page = list_jobs(full, filters, limit=5)
        places = 3 if filters == Filters() or filters.created_to else 20 if filters.status == "pending" else 1
        assert page.scanned <= 5 + places, filters


def test_the_shortest_list_is_read(ledger: Ledger) -> None:
    ledger.enqueue_many([NewJob("report", fields={"labels": "team=a"}) for _ in range(300)])
    ledger.enqueue(NewJob("report", fields={"labels": "team=a", "instance": "rare"}))

    page = list_jobs(
        ledger, Filters(status="pending", tasks=["report"], labels={"team": "a"}, instance="rare")
    )

    assert (len(page.items), page.scanned, page.next_cursor) == (1, 1, None)


def test_a_page_that_found_little_is_short_and_says_so(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LOOK", 100)
    ledger.enqueue(NewJob("report", fields={"labels": "team=a", "node": "rare"}))
    ledger.enqueue_many([NewJob("report", fields={"labels": "team=a"}) for _ in range(600)])
    ledger.enqueue_many([NewJob("report", fields={"node": "rare"}) for _ in range(700)])

    first = list_jobs(ledger, Filters(labels={"team": "a"}, node="rare"), limit=3)
    assert first.next_cursor
    second = list_jobs(ledger, Filters(labels={"team": "a"}, node="rare"), limit=3, cursor=first.next_cursor)

    assert (len(first.items), first.scanned) == (0, 100 * listing.CALLS)
    assert (len(second.items), second.next_cursor) == (1, None)


# -- the ledger changes between two pages ------------------------------------------------------------------------------

NUMBERS = count()


def churn(ledger: Ledger, chance: random.Random, spare: set[str]) -> None:
    """All that may happen between two pages to jobs that are not spared."""
    others = [job for job in everything(ledger) if job.id not in spare]
    for job in chance.sample(others, min(6, len(others))):
        match job.status:
            case State.PENDING if chance.random() < 0.5:
                ledger.reschedule(job.id, priority=chance.randrange(10), when=f"+{chance.randrange(90_000)}")
            case State.PENDING | State.RUNNING:
                ledger.cancel(job.id)
            case State.DEAD | State.CANCELED:
                ledger.retry(job.id)
            case _:
                pass
    made = [NewJob(chance.choice(TASKS), fields={"instance": "i-1", "labels": "team=a"}) for _ in range(5)]
    ledger.enqueue_many(made)
    for lease in ledger.claim("advance", "w", 4).leases:
        if lease.id not in spare:
            ledger.settle(lease, chance.choice((Succeed(), Fail("no such row", permanent=True))))
    held = [job for job in everything(ledger) if job.status == "running"]
    ledger.scripts.run(ledger.renew_call([(job.id, job.fence or 0) for job in held]))


CHANGING: dict[str, Filters] = {
    "all": Filters(),
    "tasks": Filters(tasks=["mail", "sync"]),
    "pending": Filters(status="pending"),
    "running": Filters(status="running"),
    "dead": Filters(status="dead"),
    "canceled": Filters(status="canceled"),
    "succeeded": Filters(status="succeeded"),
    "instance": Filters(instance="i-1"),
    "pending of an instance": Filters(instance="i-1", status="pending"),
    "labels and tasks": Filters(labels={"team": "a"}, tasks=["mail", "report"]),
    "words": Filters(q="no such row"),
    "older": Filters(created_to=START + 20),
}


@pytest.mark.parametrize("filters", CHANGING.values(), ids=CHANGING)
def test_what_stays_is_seen_once_whatever_happens_between_two_pages(ledger: Ledger, filters: Filters) -> None:
    chance = random.Random(3)
    fill(ledger, chance, 70)
    stay = {job.id for job in everything(ledger) if wanted(job, filters)}
    if filters.status == "pending":  # these are claimed by whoever comes
        stay = {job.id for job in everything(ledger) if job.id in stay and job.run_at > START + 20 * DAY_MS}
        late = [NewJob("mail", when=START + 30 * DAY_MS + at, fields={"instance": "i-1"}) for at in range(12)]
        ledger.enqueue_many(late)
        stay |= {job.id for job in late}
    seen: list[str] = []
    now = START + 1_000
    for page in pages(ledger.at(now), filters, 4):
        seen += [job.id for job in page.items]
        now += 1
        churn(ledger.at(now), chance, stay)

    assert sorted(job_id for job_id in seen if job_id in stay) == sorted(stay)


def test_retention_between_two_pages_skips_nothing(ledger: Ledger, at: At) -> None:
    """Of a journal whose head is cut the jobs that stay keep their place (trial: cursors over what goes)."""
    stay: list[str] = []
    for day in range(4):
        now = at(START + day * DAY_MS)
        for _ in range(150):
            lease = running(now)
            now.settle(lease, Succeed())
        lease = running(now)
        now.settle(lease, Fail("broken", permanent=True))
        stay.append(lease.id)
    newest = at(START + 3 * DAY_MS)
    seen: list[str] = []
    for nth, page in enumerate(pages(newest, Filters(tasks=["report"]), 20)):
        seen += [job.id for job in page.items]
        later = at(START + (4 + nth) * DAY_MS)
        for _ in range(120):
            later.settle(running(later, task="report"), Succeed())

    assert [job_id for job_id in seen if job_id in stay] == stay[::-1]


# -- small things -----------------------------------------------------------------------------------------------------


def test_an_id_or_a_key_is_found_in_any_state(full: Ledger) -> None:
    for job in everything(full):
        assert ids(full, q=job.id) == [job.id]
        assert ids(full, q=job.idempotency_key) == [job.id]


def test_a_key_that_is_free_again_still_finds_the_job_that_died_with_it(ledger: Ledger) -> None:
    lease = running(ledger, idempotency_key="sync", unique_mode="active")
    ledger.settle(lease, Fail("broken", permanent=True))
    again = ledger.enqueue(NewJob("report", idempotency_key="sync", unique_mode="active")).id

    assert ids(ledger, q="sync") == [again, lease.id]
    assert ids(ledger, 1, q="sync") == [again, lease.id]


def test_words_of_an_error_are_data_and_no_pattern(ledger: Ledger) -> None:
    lease = running(ledger)
    ledger.settle(lease, Fail("KeyError: '100%' of (a) [b] Ünïcode", permanent=True))

    for q in ("100%", "(A)", "[b]", "Ünïcode", "keyerror: '"):
        assert ids(ledger, q=q) == [lease.id]
    for q in ("1.0", "%a", "^Key", ".", "ÜNÏCODE"):
        assert ids(ledger, q=q) == []


def test_words_of_a_kind_of_failure_find_its_jobs_first_and_each_once(
    app: Tenure, worker: InlineWorker
) -> None:
    @app.task("pick", retry=Retry(1))
    def pick(number: int) -> None:
        raise (KeyError if number % 3 else LookupError)(f"no row {number} in the table")

    jobs = [pick.enqueue(number).id for number in range(12)]
    worker.run()
    ledger = app.ledger()

    assert sorted(ids(ledger, 5, q="no row")) == sorted(jobs)
    assert sorted(ids(ledger, 5, error="LookupError", failed=True)) == sorted(jobs[::3])
    assert ids(ledger, 5, q="row 7 in") == [jobs[7]]
    assert list_jobs(ledger, Filters(q="lookuperror"), limit=4).scanned <= 5, "the others are not looked at"


def test_waiting_and_paused_jobs_are_found(ledger: Ledger) -> None:
    waiting = ledger.enqueue(NewJob("report", fields={"node": "n"})).id
    place(ledger, waiting, State.WAITING)
    held = ledger.get(paused(ledger).id)

    assert ids(ledger, status="waiting") == ids(ledger, status="waiting", node="n") == [waiting]
    assert ids(ledger, status="paused") == ids(ledger, status="paused", instance=held.instance) == [held.id]


def test_a_cursor_is_of_one_list(ledger: Ledger) -> None:
    ledger.enqueue_many([NewJob("report", fields={"instance": "i"}) for _ in range(3)])
    cursor = list_jobs(ledger, Filters(instance="i"), limit=1).next_cursor

    assert cursor is not None
    others = [
        *(
            Filters(),
            Filters(status="dead"),
            Filters(node="n"),
            Filters(instance="j"),
            Filters(instance="i", q="x"),
        ),
        *(Filters(instance="i", created_to=START), Filters(instance="i", labels={"a": "b"})),
        *(Filters(instance="i", tasks=("report",)), Filters(instance="i", background=True)),
    ]
    for filters in others:
        with pytest.raises(BadInput, match=r"is of another list: .* the tenant and the filters of the page"):
            list_jobs(ledger, filters, cursor=cursor)
    assert len(list_jobs(ledger, Filters(instance="i"), cursor=cursor).items) == 2


@pytest.mark.parametrize("what", ["created", "ended"])
def test_a_range_that_nothing_can_be_in_is_refused(ledger: Ledger, what: str) -> None:
    Filters(**{f"{what}_from": START, f"{what}_to": START})  # type: ignore[arg-type]

    with pytest.raises(BadInput, match=rf"{what}_from 2026.* is later than {what}_to 2026") as refused:
        Filters(**{f"{what}_from": START + 1, f"{what}_to": START})  # type: ignore[arg-type]

    assert refused.value.hint


def test_a_cursor_is_of_one_tenant(ledger: Ledger, ledgers: Ledgers) -> None:
    other = ledgers.of("other")
    for one in (ledger, other):
        one.enqueue_many([NewJob("report") for _ in range(3)])
    cursor = list_jobs(ledger, Filters(), limit=1).next_cursor

    with pytest.raises(BadInput, match="is of another list"):
        list_jobs(other, Filters(), cursor=cursor)


def test_a_cursor_over_the_tasks_of_an_application_outlives_a_deploy(ledger: Ledger) -> None:
    ledger.enqueue_many([NewJob("one", fields={"background": "1"}) for _ in range(3)])
    before, after = ({"one", "two"}, {"three", "two", "one"})
    cursor = list_jobs(ledger, Filters(tasks=before, background=True), limit=1).next_cursor

    page = list_jobs(ledger, Filters(tasks=after, background=True), cursor=cursor)

    assert len(page.items) == 2


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"status": "asleep"}, "status 'asleep' is not a state"),
        ({"instance": "a\nb"}, "instance 'a"),
        ({"trace": "a/b"}, "trace 'a/b' is not allowed"),
        ({"record": "order"}, "record 'order' is no"),
        ({"labels": {"a b": "c"}}, "label 'a b' = 'c'"),
        ({"q": ""}, "q '' is not allowed"),
        ({"q": "x" * 201}, "q 'xxx"),
        ({"q": "\ud800"}, "q '"),
    ],
)
def test_a_filter_that_breaks_a_rule_is_refused(ledger: Ledger, filters: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as refused:
        ledger.list(**filters)

    assert said in str(refused.value)


def test_looking_changes_nothing(full: Ledger, store: Store) -> None:
    chance = random.Random(5)

    with store.unchanged():
        for _ in range(30):
            list(pages(full, some_filters(chance), 9))


def test_a_job_that_is_alone_in_its_trace_is_found_by_it(ledger: Ledger) -> None:
    alone, other = (
        ledger.enqueue(NewJob("mail")).id,
        ledger.enqueue(NewJob("mail", fields={"trace": "t-1"})).id,
    )

    assert [job.id for job in list_jobs(ledger, Filters(trace=alone)).items] == [alone]
    assert list_jobs(ledger, Filters(trace=alone, tasks=["report"])).items == []
    assert list_jobs(ledger, Filters(trace=other)).items == [], "it belongs to another"


# -- what the pages stand on ------------------------------------------------------------------------------------------


def test_the_pools_with_pending_jobs_are_known_once_each_wherever_the_jobs_stand(ledger: Ledger) -> None:
    Holds(ledger).add(task="held")
    made: list[tuple[str, str, dict[str, Any]]] = [
        ("advance", "report", {}),
        ("advance", "held", {}),
        ("outbound", "held", {}),
        ("keyed", "report", {"concurrency_key": "k"}),
        ("keyed", "report", {"concurrency_key": "k"}),
        ("done", "report", {}),
    ]
    for pool, task, fields in made:
        ledger.enqueue(NewJob(task, pool=pool, fields=fields))
    for pool in ("advance", "done", "keyed"):
        ledger.claim(pool, "one")
    ledger.claim("outbound", "one")

    assert pending_pools(ledger) == ["advance", "keyed", "outbound"]
    ledger.enqueue(NewJob("report", pool="advance"))
    ledger.enqueue(NewJob("report", pool="advance"))
    assert pending_pools(ledger) == ["advance", "keyed", "outbound"]


@pytest.mark.parametrize("aside", [0, 20])
def test_a_page_before_an_instant_begins_at_the_newest_job_that_is_old_enough(
    ledger: Ledger, at: At, store: Store, aside: int
) -> None:
    """Whichever jobs have gone meanwhile, and also where the oldest stand apart from the journal."""
    made = {at(START + nth).enqueue(NewJob("report")).id: START + nth for nth in range(40)}
    ids = list(made)
    if aside:
        redis: Any = store.redis
        redis.ltrim(ledger.keys("journal", task="report"), aside, -1)
        redis.zadd(ledger.keys("aside", task="report"), {job: nth for nth, job in enumerate(ids[:aside])})
        redis.hset(ledger.keys("meta"), "cut:report", aside)
    Retention(ledger).set({"canceled": "1ms"})
    for gone in ([], ids[10:20], ids[25:39], ids[:5], ids[5:9]):
        for job in gone:
            at(START + 50).cancel(job)
        at(START + 60).reap()
        ids = [job for job in ids if job not in gone]
        for before in range(START, START + 42):
            found = ledger.list(task="report", created_to=before, limit=100).items
            assert [job.id for job in found] == [job for job in reversed(ids) if made[job] < before], before
