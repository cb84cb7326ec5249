"""What goes, goes whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tenure.lease.context import WORKFLOW
from tenure.lease.instances import Instances
from tenure.lease.jobs import Lease
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, NextChunk, Outcome, SkipRest, Succeed
from tenure.lease.retention import DEFAULTS, RESTING, Keep, Retention
from tenure.scripts.errors import BadInput
from tenure.scripts.keys import parse
from tenure.scripts.loader import texts
from tenure.scripts.states import ENDED, State
from tenure.testing import START

from .given import (
    At,
    Store,
    canceled,
    claim,
    dead,
    failed,
    paused,
    pending_again,
    running,
    succeeded,
    taken_over,
)

DAY_MS = 86_400_000
GONE = "01J00000000000000000000000"


def succeed_one(ledger: Ledger, **job: Any) -> str:
    lease = running(ledger, **job)
    ledger.settle(lease, Succeed(b"r" * 100))
    return lease.id


def test_a_succeeded_job_goes_after_a_day_and_leaves_nothing(ledger: Ledger, at: At, store: Store) -> None:
    lease = running(ledger, args=b"a" * 5_000, idempotency_key="key", fields={"background": "1"})
    assert [key for key in store.dump() if ":b:" in key and lease.id in key], "long arguments have a key"
    ledger.report(lease, doing=1, total=2, lines=["hello"])
    ledger.settle(lease, NextChunk(b"c" * 100, done=1, total=2))
    ledger.settle(claim(ledger), Fail("no luck", stack="here"))
    again = claim(at(ledger.get(lease.id).run_at))
    at(again.expires_at - 1).settle(again, Succeed(b"r" * 100))
    tomorrow = at(again.expires_at + DAY_MS)

    kept = succeed_one(tomorrow, task="other")

    assert [job.id for job in tomorrow.list().items] == [kept]
    assert tomorrow.counts() == {("other", "succeeded"): 1}
    assert not [key for key in store.dump() if lease.id in key]
    assert not store.redis.exists(ledger.keys("journal", task="report"))


def test_a_kept_key_is_free_when_its_job_has_gone(ledger: Ledger, at: At) -> None:
    first = succeed_one(ledger, idempotency_key="key")
    tomorrow = at(ledger.get(first).finished_at + DAY_MS)
    succeed_one(tomorrow)

    assert tomorrow.enqueue(NewJob("report", idempotency_key="key")).created


# -- without new successes ---------------------------------------------------------------------------------------------


def reap_all(ledger: Ledger) -> None:
    """Reap until the reaper is not wanted at once any more."""
    for _ in range(100):
        ledger.reap()
        if not ledger.index.take("reap", 1).tenants:
            return
    raise AssertionError("the reaper is wanted for ever")


@pytest.mark.parametrize("arrange", [succeeded, canceled], ids=["succeeded", "canceled"])
def test_the_reaper_lets_jobs_go_after_a_day_and_not_before(
    ledger: Ledger, at: At, arrange: Callable[[Ledger], Lease]
) -> None:
    lease = arrange(ledger)

    at(START + DAY_MS - 1).reap()
    assert ledger.get_many([lease.id])
    at(START + DAY_MS).reap()
    assert ledger.get_many([lease.id]) == []


def test_the_index_knows_when_something_is_over_its_time(ledger: Ledger, at: At) -> None:
    succeeded(ledger)
    (said,) = [news for news in ledger.standing() if news.queue == "reap"]
    assert said.due_ms == START + DAY_MS

    ledger.reap()
    assert at(START + DAY_MS - 1).index.take("reap", 1).tenants == []
    assert at(START + DAY_MS).index.take("reap", 1).tenants == ["acme"]

    at(START + DAY_MS).reap()
    assert [news for news in at(START + DAY_MS).standing() if news.queue == "reap"] == []


def test_a_slice_goes_at_a_time_and_the_reaper_comes_again_for_the_rest(ledger: Ledger, at: At) -> None:
    ids = succeed_many(ledger, 450)
    tomorrow = at(START + DAY_MS)

    left = []
    for _ in range(3):
        tomorrow.reap()
        left.append(sum(tomorrow.counts().values()))
        assert (tomorrow.index.take("reap", 1).tenants == ["acme"]) == (left[-1] > 0)

    assert left == [250, 50, 0]
    assert ledger.get_many(ids[:100]) == []


def test_a_slice_is_of_all_states_together(ledger: Ledger, at: At) -> None:
    succeed_many(ledger, 150)
    for _ in range(150):
        canceled(ledger)

    at(START + DAY_MS).reap()

    assert sum(ledger.counts().values()) == 100


def test_what_is_over_the_number_goes_first_of_all(ledger: Ledger) -> None:
    Retention(ledger).set({"canceled": Keep(most=3), "succeeded": Keep(most=2)})
    stopped = [canceled(ledger.at(START + at)).id for at in range(5)]
    done = [succeed_one(ledger.at(START + 10 + at)) for at in range(4)]

    reap_all(ledger.at(START + 20))

    assert [job.id for job in ledger.get_many(stopped)] == stopped[2:]
    assert [job.id for job in ledger.get_many(done)] == done[2:]


def test_a_cancel_makes_room_for_itself(ledger: Ledger) -> None:
    Retention(ledger).set({"canceled": Keep(most=2)})
    stopped = [canceled(ledger.at(START + at)).id for at in range(6)]

    assert len(ledger.get_many(stopped)) == 3, "the new one comes after those that went"


@pytest.mark.parametrize(
    ("state", "arrange"),
    [("dead", dead), ("failed", failed), ("paused", paused)],
    ids=["dead", "failed", "paused"],
)
def test_what_waits_for_a_person_goes_only_if_somebody_says_so(
    ledger: Ledger, at: At, state: str, arrange: Callable[[Ledger], Lease]
) -> None:
    lease = arrange(ledger)
    later = at(START + 400 * DAY_MS)
    later.reap()
    assert later.get(lease.id).status == state

    Retention(ledger).set({state: "30d"})
    at(START + 30 * DAY_MS - 1).reap()
    assert ledger.get_many([lease.id])
    at(START + 30 * DAY_MS).reap()
    assert ledger.get_many([lease.id]) == []


def test_what_is_said_of_one_tenant_holds_for_it_alone_and_can_be_taken_back(ledgers: Ledgers) -> None:
    acme, other = Retention(ledgers.of("acme")), Retention(ledgers.of("other"))

    said = acme.set({"dead": "90d", "succeeded": Keep(most=5), "canceled": "forever"})

    assert said == acme.get()
    assert said == {
        **dict.fromkeys(("failed", "paused"), Keep()),
        "dead": Keep(90 * DAY_MS),
        "succeeded": Keep(None, 5),
        "canceled": Keep(),
    }
    assert other.get() == {**dict.fromkeys(RESTING, Keep()), **DEFAULTS}
    assert acme.set({"succeeded": "2d"})["succeeded"] == Keep(2 * DAY_MS, 100_000)
    assert acme.set(dict.fromkeys(RESTING, "default")) == other.get()


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ({"running": "1d"}, "'running' is no state in which a job rests"),
        ({"dead": "soon"}, "retention of dead 'soon' is not a duration"),
        ({"dead": "0s"}, "retention of dead '0s' is too short"),
        ({"dead": float("nan")}, "retention of dead nan is not a duration"),
    ],
)
def test_a_retention_that_breaks_a_rule_is_refused(
    ledger: Ledger, store: Store, states: dict[str, Any], said: str
) -> None:
    with store.unchanged(), pytest.raises(BadInput) as refused:
        Retention(ledger).set(states)

    assert said in str(refused.value)


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, "7"])
def test_a_bound_is_a_whole_number(bound: Any) -> None:
    for name in ("after_ms", "most"):
        with pytest.raises(BadInput, match=f"{name} .* is out of range"):
            Keep(**{name: bound})


# -- nothing is left ---------------------------------------------------------------------------------------------------


def use_everything(ledger: Ledger) -> None:
    """Jobs with all that a job can have, in every state in which one can rest."""
    long = "x" * 100
    fields: dict[str, Any] = dict.fromkeys(WORKFLOW, long) | {
        "background": "1",
        "labels": f"team=a\ntier={long}",
        "record": f"order:{long}",
        "trace": long,
        "priority": "3",
        "start_by": "+1000000",
        "pausable": "1",
    }
    ends: list[Outcome] = [Succeed(b"r" * 100), SkipRest(long), Fail(long, permanent=True, stack=long)]
    for nth, end in enumerate([*ends, None]):
        job = NewJob(
            "whole", b"a" * 100, idempotency_key=f"{long}{nth}", fields={**fields, "instance": f"i{nth}"}
        )
        ledger.enqueue(job)
        lease = claim(ledger)
        ledger.report(
            lease, doing=1, total=2, lines=["line"], request=long, response=long, cursor=b"c" * 100, done=1
        )
        ledger.settle(lease, NextChunk(b"c" * 100, done=1, total=2))
        lease = claim(ledger)
        if end is None:
            Instances(ledger).pause(f"i{nth}", "stock count", "ada")
        else:
            ledger.settle(lease, end)
    for arrange in (pending_again, taken_over, canceled, failed, dead):
        lease = arrange(ledger)
        if ledger.get(lease.id).status not in ENDED:
            ledger.cancel(lease.id, long, "ada")
        elif ledger.get(lease.id).status == "dead":
            ledger.retry(lease.id, args=b"b" * 100, reason=long, by="ada")
            ledger.skip(lease.id, long, "ada")
    root = ledger.enqueue(NewJob("root")).id
    child = ledger.enqueue(NewJob("child", fields={"trace": root, "parent": root})).id
    for job_id in (root, child, ledger.enqueue(NewJob("child", pool="outbound", when="+5000")).id):
        ledger.cancel(job_id)


def test_when_all_jobs_have_gone_nothing_of_them_is_left(ledger: Ledger, at: At, store: Store) -> None:
    Retention(ledger).set(dict.fromkeys(RESTING, "1d"))
    use_everything(ledger)
    assert {State(state) for _, state in ledger.counts()} == {*RESTING}
    Instances(ledger).resume("i3", "counted", "ada")
    ledger.cancel(ledger.list(status="pending").items[0].id)
    later = at(START + 3 * DAY_MS)

    reap_all(later)
    for pool in ("advance", "outbound"):
        assert later.claim(pool, "one").leases == []

    left = {parse(name)[2]: value for name, (_, value) in store.dump().items() if parse(name)[1] == "acme"}
    own = {family: value for family, value in left.items() if family not in ("memo", "minute")}
    keeps = {f"keep:{state}".encode() for state in RESTING}
    ends = {f"let_go:{state}".encode() for state in ENDED}
    assert set(own.pop("meta")) == {b"clock", b"born", b"gone", *keeps, *ends}
    assert set(own.pop("figures")) == {b"claim|advance"}, "when a job of the pool was last claimed"
    assert own == {}
    queues = {name: value for name, (_, value) in store.dump().items() if "{@}:i:" in name}
    assert queues == {}, "nobody is sent to look for them"


def test_at_most_two_go_for_each_that_comes(ledger: Ledger, at: At) -> None:
    old = [succeed_one(ledger) for _ in range(5)]
    tomorrow = at(ledger.get(old[0]).finished_at + DAY_MS)

    succeed_one(tomorrow)

    assert [job.id for job in tomorrow.get_many(old)] == old[2:]


def test_a_journal_loses_the_jobs_that_go_and_at_most_two_that_went_before(
    ledger: Ledger, at: At, store: Store
) -> None:
    """Entries pile up behind a job that is in no hurry; when it goes they are cut off, a few with each call."""
    first = dead_one(ledger)
    behind = [succeed_one(ledger, task="slow") for _ in range(5)]
    journal = ledger.keys("journal", task="slow")
    for day in range(1, 4):
        succeed_one(at(START + day * DAY_MS), task="other")
    assert len(at(START + 3 * DAY_MS).get_many(behind)) == 0

    at(START + 4 * DAY_MS).retry(first)
    at(START + 4 * DAY_MS).settle(claim(at(START + 4 * DAY_MS)), Succeed())
    waiting = ledger.enqueue(NewJob("slow", when=START + 9 * DAY_MS)).id
    succeed_one(at(START + 5 * DAY_MS), task="other")
    succeed_one(at(START + 6 * DAY_MS), task="other")

    assert texts(store.redis.lrange(journal, 0, -1)) == [*behind[2:], waiting]
    assert store.redis.hget(ledger.keys("meta"), "cut:slow") == b"3"


def gone(many: int) -> list[str]:
    return [f"01J{number:023}" for number in range(many)]


@pytest.mark.parametrize("aside", [0, 3])
@pytest.mark.parametrize("many", [256, 257, 509, 510, 600])
def test_what_stays_is_set_aside_when_a_journal_has_too_many_gone_entries(
    ledger: Ledger, at: At, store: Store, many: int, aside: int
) -> None:
    """256 are left alone; when there are more, 512 entries are cut, and what stays of them keeps its position."""
    journal, stayed = ledger.keys("journal", task="slow"), ledger.keys("aside", task="slow")
    old = [dead_one(ledger) for _ in range(aside)]
    for position, job_id in enumerate(old):
        store.redis.zadd(stayed, {job_id: position})
        store.redis.lpop(journal)
    if aside:
        store.redis.hset(ledger.keys("meta"), "cut:slow", aside)
    head = dead_one(ledger)
    succeed_one(ledger, task="slow")
    store.redis.rpush(journal, *(f"01J{number:023}" for number in range(many)))
    last = ledger.enqueue(NewJob("slow", when=START + 9 * DAY_MS)).id
    entries = texts(store.redis.lrange(journal, 0, -1))

    succeed_one(at(START + DAY_MS), task="other")

    cut = min(512, len(entries)) if many > 256 else 0
    assert int(store.redis.hget(ledger.keys("meta"), "cut:slow") or 0) == aside + cut
    assert texts(store.redis.lrange(journal, 0, -1)) == entries[cut:]
    stay = [*old, *(job_id if job_id in (head, last) else "" for job_id in entries[:cut])]
    expected = {job_id.encode(): float(position) for position, job_id in enumerate(stay) if job_id}
    assert dict(store.redis.zrange(stayed, 0, -1, withscores=True)) == expected
    assert [job.id for job in at(START + DAY_MS).list(task="slow").items] == [last, head, *reversed(old)]


def test_a_journal_of_gone_entries_alone_goes_with_its_last_job(ledger: Ledger, at: At, store: Store) -> None:
    journal = ledger.keys("journal", task="slow")
    store.redis.rpush(journal, *([GONE] * 600))
    succeed_one(ledger, task="slow")

    succeed_one(at(START + DAY_MS), task="other")

    assert not store.redis.exists(journal, ledger.keys("aside", task="slow"))


def test_the_oldest_go_before_their_day_when_there_are_too_many(ledger: Ledger, store: Store) -> None:
    """100,000 of a tenant are kept."""
    old = [succeed_one(ledger) for _ in range(3)]
    succeeded = ledger.keys("succeeded")
    for _ in range(10):
        store.redis.rpush(succeeded, *([GONE] * 10_000))
    store.redis.ltrim(succeeded, 0, 99_999 - 1)

    succeed_one(ledger)
    assert len(ledger.get_many(old)) == 3
    last = succeed_one(ledger)
    assert [job.id for job in ledger.get_many(old)] == old[1:]

    store.redis.lrem(succeeded, 0, GONE)
    assert texts(store.redis.lrange(succeeded, 0, -1))[-1] == last


def test_entries_without_a_row_are_let_go(ledger: Ledger, at: At, store: Store) -> None:
    succeeded = ledger.keys("succeeded")
    store.redis.rpush(succeeded, GONE, GONE, GONE)

    last = [succeed_one(ledger), succeed_one(ledger)]

    assert texts(store.redis.lrange(succeeded, 0, -1)) == last


def test_nobody_goes_when_nobody_succeeds(ledger: Ledger, at: At, store: Store) -> None:
    old = [succeed_one(ledger) for _ in range(3)]
    tomorrow = at(START + DAY_MS)

    tomorrow.settle(running(tomorrow), Fail("no luck"))
    assert len(tomorrow.get_many(old)) == 3
    assert not [name for name in store.redis.hkeys(ledger.keys("meta")) if name.startswith(b"cut:")]

    succeed_one(tomorrow)
    assert store.redis.hget(ledger.keys("meta"), "cut:+ok") == b"2"


def dead_one(ledger: Ledger) -> str:
    lease = running(ledger, task="slow")
    ledger.settle(lease, Fail("no", permanent=True))
    return lease.id


def test_what_waits_for_a_person_does_not_go(ledger: Ledger, at: At) -> None:
    lease = running(ledger)
    ledger.settle(lease, Fail("no", permanent=True))
    much_later = at(lease.expires_at + 400 * DAY_MS)
    succeed_one(much_later)

    assert much_later.get(lease.id).status == "dead"


def test_a_journal_behind_a_job_that_does_not_go_keeps_its_bound(ledger: Ledger, at: At) -> None:
    dead = running(ledger)
    ledger.settle(dead, Fail("no", permanent=True))
    ids = [succeed_many(at(START + day * DAY_MS), 600) for day in range(1, 6)][-1]

    newest = at(START + 5 * DAY_MS)
    journal = newest.scripts.redis.llen(newest.keys("journal", task="report"))
    assert journal < 600 + 600 + 300, "the living, those of a day before, and some slack"
    pages = list(pages_of(newest))
    assert pages[: len(ids)] == ids[::-1]
    assert pages[-1] == dead.id


def succeed_many(ledger: Ledger, many: int) -> list[str]:
    ledger.enqueue_many([NewJob("report") for _ in range(many)])
    leases = [lease for _ in range(0, many, 50) for lease in ledger.claim("advance", "one", 50).leases]
    for at in range(0, many, 50):
        ends = [(lease.id, lease.fence, Succeed()) for lease in leases[at : at + 50]]
        ledger.scripts.run(ledger.settle_call(ends))
    return [lease.id for lease in leases]


def pages_of(ledger: Ledger) -> Iterator[str]:
    cursor = None
    while True:
        page = ledger.list(limit=100, cursor=cursor)
        yield from (job.id for job in page.items)
        cursor = page.next_cursor
        if cursor is None:
            return
