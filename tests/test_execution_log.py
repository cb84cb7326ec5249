"""The execution log: each planned fire that was executed, failed or was skipped has its entry, and none has two."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure import Tenure
from tenure.lease.bulk import enqueue_all
from tenure.lease.ids import fire_id
from tenure.lease.instances import Instances
from tenure.lease.ledger import NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, SkipRest, Succeed
from tenure.lease.requests import Options
from tenure.lease.tasks import Task
from tenure.scheduler import pausing
from tenure.scheduler.execution_log import event_id
from tenure.scheduler.plan import month
from tenure.scheduler.schedules import Schedules
from tenure.scheduler.skips import DISABLED
from tenure.scheduler.switch import Scheduling
from tenure.scheduler.trigger import Trigger
from tenure.scripts.errors import BadInput, NotFound, StoreError, StoreUnreachable
from tenure.scripts.states import State
from tenure.testing import START, Faults, Invariants, Server, dump, wipe

from .clockwork import DAY, EVERY_MINUTE, FIRST, KEY, MINUTE, SECOND, TASK, Clockwork, pages
from .given import Store, claim


@pytest.fixture
def clockwork(ledgers: Ledgers) -> Clockwork:
    return Clockwork(ledgers)


@pytest.fixture
def fired(clockwork: Clockwork) -> Clockwork:
    """With one fire, whose job waits."""
    clockwork.put()
    clockwork.fire(FIRST)
    return clockwork


# -- what fired -------------------------------------------------------------------------------------------------------


def test_a_fired_job_is_logged_when_it_has_ended_and_not_before(fired: Clockwork) -> None:
    assert fired.log() == []

    job_id = fired.end(FIRST + SECOND, Succeed())

    (entry,) = fired.log()
    assert (entry.status, entry.executed, entry.reason, entry.message) == ("Executed", True, None, None)
    assert (entry.trigger, entry.fire_time, entry.created_at) == ("default", FIRST, FIRST + SECOND)
    assert entry.job_id == job_id == fire_id("acme", KEY, "default", FIRST)
    assert entry.event_id == event_id("acme", KEY, "default", FIRST)
    assert (entry.until, entry.count, entry.round) == (None, 1, 1)


def test_an_attempt_that_fails_and_is_tried_again_is_no_end(fired: Clockwork) -> None:
    fired.end(FIRST, Fail("no luck", delay_ms=SECOND))
    assert fired.log() == []

    fired.end(FIRST + SECOND, Succeed())

    assert fired.said() == [("Executed", None, True)]


def test_a_dead_job_is_logged_with_its_error(fired: Clockwork) -> None:
    fired.end(FIRST, Fail("ValueError: ö" + "x" * 1000, permanent=True))

    (entry,) = fired.log()
    assert (entry.status, entry.reason, entry.executed) == ("Failed", "permanent_error", True)
    assert entry.message is not None
    assert entry.message.startswith("ValueError: öxxx")
    assert len(entry.message.encode()) == 400


def test_an_error_is_cut_between_characters(fired: Clockwork) -> None:
    fired.end(FIRST, Fail("x" + "ö" * 300, permanent=True))

    assert fired.log()[0].message == "x" + "ö" * 199


def test_a_round_that_a_person_adds_has_an_entry_of_its_own(fired: Clockwork) -> None:
    """It failed at one time and was executed at another: both have happened."""
    job_id = fired.end(FIRST, Fail("no luck", permanent=True))
    before = fired.log()
    fired.ledger(FIRST + MINUTE).retry(job_id, reason="the disk has room again")
    assert fired.log() == before

    fired.end(FIRST + MINUTE, Succeed())

    failed, executed = fired.log()
    assert [failed] == before
    assert (executed.status, executed.round, executed.job_id) == ("Executed", 2, job_id)
    assert executed.event_id == event_id("acme", KEY, "default", FIRST, 2) != failed.event_id


def test_what_is_canceled_before_it_began_failed_and_was_not_executed(fired: Clockwork) -> None:
    fired.ledger(FIRST).cancel(fire_id("acme", KEY, "default", FIRST), "the customer left")

    assert fired.said() == [("Failed", "canceled", False)]
    assert fired.log()[0].message == "the customer left"


def test_what_is_canceled_while_it_runs_had_begun(fired: Clockwork) -> None:
    lease = claim(fired.ledger(FIRST))
    fired.ledger(FIRST).cancel(lease.id)

    assert fired.said() == [("Failed", "canceled", True)]


def test_a_dead_job_that_is_skipped_has_no_second_entry(fired: Clockwork) -> None:
    job_id = fired.end(FIRST, Fail("no luck", permanent=True))
    fired.ledger(FIRST).skip(job_id, "seen")

    assert fired.said() == [("Failed", "permanent_error", True)]


def test_a_job_that_is_lost_too_often_is_logged(fired: Clockwork) -> None:
    now = FIRST
    for _ in range(3):
        now = claim(fired.ledger(now)).expires_at
        fired.ledger(now).reap()

    assert fired.said() == [("Failed", "lost_too_often", True)]
    assert fired.log()[0].message == "the lease ended and was not renewed"


def test_a_job_that_nobody_starts_in_time_is_logged(clockwork: Clockwork) -> None:
    clockwork.put(options=Options(start_by="10s"))
    clockwork.fire(FIRST)

    clockwork.ledger(FIRST + 10 * SECOND).reap()

    assert clockwork.said() == [("Failed", "expired", False)]


def test_what_its_task_leaves_undone_was_executed_and_says_why(fired: Clockwork) -> None:
    fired.end(FIRST, SkipRest("a holiday"))

    assert fired.said() == [("Executed", None, True)]
    assert fired.log()[0].message == "a holiday"


def test_a_job_that_a_newer_fire_cancels_is_logged(clockwork: Clockwork) -> None:
    clockwork.put(overlap="cancel_running")
    clockwork.fire(FIRST)
    clockwork.fire(FIRST + MINUTE)

    assert clockwork.said() == [("Failed", "canceled", False)]
    assert clockwork.log()[0].message == "its next fire is due"


def test_a_job_that_is_made_for_an_instance_that_has_ended_is_logged_at_once(clockwork: Clockwork) -> None:
    task = Task(KEY, lambda: None, cleared_on_end=True)
    clockwork.schedules().put(KEY, task, EVERY_MINUTE, options=Options(instance="order-7"))
    Instances(clockwork.ledger(START)).end("order-7", "shipped")
    clockwork.fire(FIRST)

    assert clockwork.said() == [("Failed", "canceled", False)]


def test_an_end_is_in_the_month_of_its_fire(clockwork: Clockwork) -> None:
    planned = int(datetime(2026, 9, 30, 23, 59, tzinfo=UTC).timestamp() * 1000)
    clockwork.put([Trigger("default", at="2026-09-30T23:59:00Z")])
    clockwork.fire(planned)
    clockwork.end(planned + MINUTE, Succeed())

    (entry,) = clockwork.log(planned)
    assert month(entry.created_at) == "202610"
    assert clockwork.schedules().logs(KEY, month="202610").items == []


def test_jobs_that_are_no_planned_fires_are_not_logged(clockwork: Clockwork, store: Store) -> None:
    clockwork.put()
    pausing.run(clockwork.schedules(), KEY)
    pausing.run(clockwork.schedules(), KEY, at=FIRST)
    enqueue_all(clockwork.ledgers, [("acme", NewJob("another"))])
    for _ in range(3):
        clockwork.end(START, Succeed())

    assert not [name for name in store.dump() if ":xl:" in name]


# -- what was skipped -------------------------------------------------------------------------------------------------


def test_a_skip_is_logged_when_it_is_recorded(clockwork: Clockwork) -> None:
    clockwork.put()
    clockwork.schedules(FIRST).delete(KEY)

    (entry,) = clockwork.log()
    assert (entry.status, entry.executed, entry.reason) == ("Skipped", False, "deleted")
    assert entry.message == "The schedule was deleted before it could fire."
    assert (entry.fire_time, entry.created_at, entry.job_id) == (FIRST, FIRST, None)
    assert entry.event_id == event_id("acme", KEY, "default", FIRST)


def test_a_range_of_skipped_instants_is_one_entry(clockwork: Clockwork) -> None:
    clockwork.put()
    clockwork.fire(FIRST + 5 * MINUTE)

    (entry,) = clockwork.log()
    assert (entry.reason, entry.fire_time, entry.until, entry.count) == (
        *("coalesced", FIRST, FIRST + 4 * MINUTE),
        5,
    )


Skip = Callable[[Clockwork], object]
SKIPS: dict[str, Skip] = {
    "superseded": lambda it: it.put([Trigger("default", "30 * * * * ?")], now=FIRST),
    "paused": lambda it: pausing.pause(it.schedules(FIRST), KEY),
    "misfire": lambda it: (it.put(misfire="skip"), it.fire(FIRST + MINUTE + 59 * SECOND)),
    "overlap": lambda it: (it.put(overlap="skip"), it.fire(FIRST), it.fire(FIRST + MINUTE)),
    "queue_full": lambda it: (it.put(overlap="queue"), *(it.fire(FIRST + n * MINUTE) for n in range(3))),
}


@pytest.mark.parametrize("reason", SKIPS)
def test_each_reason_is_logged_in_words(clockwork: Clockwork, reason: str) -> None:
    clockwork.put()
    SKIPS[reason](clockwork)

    found = {one.reason: one.message for one in clockwork.log() if one.status == "Skipped"}
    assert found.keys() == {reason}
    assert (found[reason] or "").endswith(".")


def test_a_disabled_tenants_instants_are_logged_once_by_all_schedulers(clockwork: Clockwork) -> None:
    clockwork.put()
    Scheduling(clockwork.ledger(START)).set(enabled=False)
    for minute in range(3):
        clockwork.fire(FIRST + minute * MINUTE, "one", "two", "three")

    assert clockwork.said() == [("Skipped", DISABLED, False)] * 3
    message = clockwork.log()[0].message or ""
    assert "this scheduler did not run it" in message
    assert "本调度器未执行" in message


def test_what_nobody_observed_is_not_logged(clockwork: Clockwork) -> None:
    clockwork.put()
    Scheduling(clockwork.ledger(START)).set(enabled=False)
    Scheduling(clockwork.ledger(FIRST + 5 * MINUTE)).set(enabled=True)
    clockwork.fire(FIRST + 5 * MINUTE)

    assert [fire.reason for fire in clockwork.schedules().fires(KEY, month=month(START))[0]] == ["unobserved"]
    assert clockwork.log() == []


# -- written once, and without harm -----------------------------------------------------------------------------------


def test_an_end_that_is_sent_again_is_logged_once(fired: Clockwork, faults: Faults) -> None:
    ledger = fired.ledger(FIRST)
    lease = claim(ledger)
    faults.lose_reply("settle")
    with pytest.raises(StoreUnreachable):
        ledger.settle(lease, Succeed())

    ledger.settle(lease, Succeed())

    assert fired.said() == [("Executed", None, True)]


def test_entries_of_one_moment_and_of_a_clock_that_goes_back_keep_their_order(clockwork: Clockwork) -> None:
    clockwork.put([Trigger(name, "0 * * * * ?") for name in "abc"])
    clockwork.fire(FIRST)
    for _ in range(3):
        clockwork.end(FIRST, Succeed())
    clockwork.schedules(FIRST + MINUTE).delete(KEY)

    positions = [one.position for one in clockwork.log()]
    assert len(set(positions)) == 6
    assert [one.status for one in clockwork.log()] == ["Executed"] * 3 + ["Skipped"] * 3


def test_a_clock_that_steps_back_loses_no_entry(fired: Clockwork) -> None:
    fired.ledger(FIRST + MINUTE).enqueue(NewJob("another"))
    fired.ledger(FIRST + MINUTE).cancel(fire_id("acme", KEY, "default", FIRST))
    (before,) = fired.log()
    fired.ledger(FIRST).retry(fire_id("acme", KEY, "default", FIRST))
    fired.ledger(FIRST).cancel(fire_id("acme", KEY, "default", FIRST))

    assert [one.round for one in fired.log()] == [2, 4]
    assert before.created_at == FIRST + MINUTE <= fired.log()[1].created_at


def test_a_log_that_cannot_be_written_changes_no_result(
    fired: Clockwork, tenure_server: Server, tenure_namespace: str
) -> None:
    redis: Any = tenure_server.redis
    key = fired.ledger(START).keys("entries", month=month(FIRST), job_key=KEY)
    redis.set(key, "somebody's own")

    job_id = fired.end(FIRST, Succeed())

    assert fired.ledger(FIRST).get(job_id).status is State.SUCCEEDED
    assert redis.hget(fired.ledger(START).keys.home, "unlogged") == b"1"
    assert redis.get(key) == b"somebody's own"
    with pytest.raises(StoreError):
        fired.log()
    wipe(tenure_server.redis, tenure_namespace)  # the invariants miss the entry


def test_a_full_server_still_logs_the_end_of_a_job(fired: Clockwork, fill: Callable[[], None]) -> None:
    lease = claim(fired.ledger(FIRST))
    fill()

    fired.ledger(FIRST).settle(lease, Succeed())

    assert fired.said() == [("Executed", None, True)]


def test_entries_are_short_and_none_is_missed(seven: Clockwork, tenure_server: Server) -> None:
    redis: Any = tenure_server.redis
    keys, newest = seven.ledger(START).keys, seven.log()[-1]

    stored = redis.lindex(keys("entries", month=month(FIRST), job_key=KEY), -1)
    assert stored.decode() == f"{newest.position} E default {newest.fire_time} 1"
    assert not redis.hexists(keys.home, "unlogged")


def test_a_months_log_goes_by_itself(fired: Clockwork, tenure_server: Server) -> None:
    redis: Any = tenure_server.redis
    fired.end(FIRST, Succeed())

    key = fired.ledger(START).keys("entries", month=month(FIRST), job_key=KEY)
    assert 430 * 86_400 < redis.ttl(key) <= 431 * 86_400
    redis.persist(key)
    fired.fire(FIRST + MINUTE)
    fired.end(FIRST + MINUTE, Succeed())
    assert redis.ttl(key) == -1  # only the first entry says how long


# -- books ------------------------------------------------------------------------------------------------------------


def books(clockwork: Clockwork) -> dict[str, int]:
    redis: Any = clockwork.ledgers.scripts.redis
    found = redis.zrange(clockwork.ledger(START).keys("books"), 0, -1, withscores=True)
    return {name.decode(): int(clock) for name, clock in found}


def test_a_book_is_known_by_the_clock_of_its_last_record(fired: Clockwork) -> None:
    fires, log = f"f:202609:default:{KEY}", f"xl:202609:{KEY}"
    at_fire = books(fired)
    fired.end(FIRST, Succeed())
    at_end = books(fired)

    assert at_fire.keys() == {fires}
    assert at_end == {fires: at_fire[fires], log: int(fired.log()[0].position) + 1}
    fired.fire(FIRST + MINUTE)
    assert books(fired)[fires] > at_end[log] == books(fired)[log]


def test_books_that_have_gone_by_their_time_are_forgotten(fired: Clockwork, tenure_server: Server) -> None:
    redis: Any = tenure_server.redis
    gone = {"f:202501:a:old", "xl:202501:old", "f:202502:a:old"}
    redis.zadd(fired.ledger(START).keys("books"), {name: at for at, name in enumerate(sorted(gone))})

    fired.end(FIRST, Succeed())  # begins the log
    assert len(gone & books(fired).keys()) == 1
    fired.put([Trigger("other", "0 * * * * ?")], now=FIRST)
    fired.fire(FIRST + MINUTE)  # begins the records of another trigger

    assert books(fired).keys() == {f"f:202609:default:{KEY}", f"f:202609:other:{KEY}", f"xl:202609:{KEY}"}


def test_fire_records_that_go_after_thirteen_months_are_in_no_book(clockwork: Clockwork) -> None:
    year_ago = START - 396 * DAY
    clockwork.put([Trigger("default", at="2025-08-22T00:00:00Z")], now=year_ago)
    clockwork.fire(START - 395 * DAY)
    assert books(clockwork).keys() == {f"f:202508:default:{KEY}"}

    clockwork.put(now=START)
    clockwork.fire(FIRST)

    assert books(clockwork).keys() == {f"f:202609:default:{KEY}"}


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_fire_records_are_paged_by_their_instants(seven: Clockwork, limit: int) -> None:
    found: list[int] = []
    for page in pages(seven.schedules(), KEY, month="202609", limit=limit):
        found += [one.fire_time for one in page]

    assert found == [FIRST + minute * MINUTE for minute in reversed(range(7))]


# -- read -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def seven(clockwork: Clockwork) -> Clockwork:
    """Seven minutes of fires that all ended."""
    clockwork.put()
    for minute in range(7):
        clockwork.fire(FIRST + minute * MINUTE)
        clockwork.end(FIRST + minute * MINUTE, Succeed())
    return clockwork


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8])
def test_pages_go_from_the_newest_to_the_oldest(seven: Clockwork, limit: int) -> None:
    found: list[int] = []
    cursor: str | None = None
    pages = 0
    while pages == 0 or cursor is not None:
        page = seven.schedules().logs(KEY, month=month(START), limit=limit, cursor=cursor)
        assert page.next_cursor is None or len(page.items) == limit
        found += [one.fire_time for one in page.items]
        cursor, pages = page.next_cursor, pages + 1

    assert found == [FIRST + minute * MINUTE for minute in reversed(range(7))]
    assert pages == -(-7 // limit)


def test_a_page_goes_on_where_it_was_though_new_entries_come(seven: Clockwork) -> None:
    first = seven.schedules().logs(KEY, month=month(START), limit=3)
    seven.fire(FIRST + 7 * MINUTE)
    seven.end(FIRST + 7 * MINUTE, Succeed())

    second = seven.schedules().logs(KEY, month=month(START), limit=3, cursor=first.next_cursor)

    times = [one.fire_time for one in [*first.items, *second.items]]
    assert times == [FIRST + minute * MINUTE for minute in (6, 5, 4, 3, 2, 1)]


def test_after_the_oldest_there_is_nothing(seven: Clockwork) -> None:
    *_, oldest = seven.schedules().logs(KEY, month=month(START)).items

    assert seven.schedules().logs(KEY, month=month(START), cursor=oldest.position).items == []


def test_the_log_of_a_deleted_schedule_is_still_read(seven: Clockwork) -> None:
    seven.schedules(FIRST + 6 * MINUTE).delete(KEY)

    assert len(seven.log()) == 7
    with pytest.raises(NotFound):
        seven.schedules().logs(KEY, month="202601")


def test_a_month_without_entries_is_empty(clockwork: Clockwork) -> None:
    clockwork.put()

    assert clockwork.schedules().logs(KEY, month="202601").items == []
    with pytest.raises(NotFound):
        clockwork.schedules().logs("reports.weekly", month="202601")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"month": "2026-09"}, "month '2026-09' is not a month as YYYYMM"),
        ({"month": "202613"}, "not a month"),
        ({"month": 202609}, "not a month"),
        ({"month": "٢٠٢٦٠٩"}, "not a month"),
        ({"limit": 0}, "limit 0 is out of range: 1 to 100"),
        ({"limit": 101}, "limit 101"),
        ({"cursor": "x"}, "cursor 'x' is not one this list gave"),
        ({"cursor": "-1"}, "is not one this list gave"),
        ({"cursor": 7}, "is not one this list gave"),
    ],
)
def test_bad_input_is_refused(clockwork: Clockwork, given: dict[str, Any], said: str) -> None:
    clockwork.put()

    with pytest.raises(BadInput, match=said):
        clockwork.schedules().logs(KEY, **{"month": "202609", **given})


def test_two_tenants_have_a_log_each(clockwork: Clockwork) -> None:
    for tenant in ("acme", "globex"):
        Schedules(clockwork.ledgers.of(tenant)).put(KEY, TASK, EVERY_MINUTE)
        Schedules(clockwork.at(FIRST).of(tenant)).delete(KEY)

    one, other = (
        Schedules(clockwork.ledgers.of(name)).logs(KEY, month="202609") for name in ("acme", "globex")
    )
    assert len(one.items) == len(other.items) == 1
    assert one.items[0].event_id != other.items[0].event_id


def test_an_application_reads_its_log(app: Tenure) -> None:
    @app.task(KEY)
    def daily() -> None: ...

    app.schedules.put(KEY, task=KEY, triggers=[Trigger("default", every="1s")], tenant="acme")
    (due,) = app.schedules.get(KEY, "acme").next_fires.values()
    Schedules(app.ledger("acme").at(due + 5 * SECOND)).delete(KEY)

    (entry,) = app.schedules.logs(KEY, month=month(due), tenant="acme").items
    assert (entry.reason, entry.count) == ("deleted", 6)


# -- the invariants ---------------------------------------------------------------------------------------------------


Damage = Callable[[Any, Callable[..., str]], object]
LOG = {"month": month(FIRST), "job_key": KEY}
LATER = (FIRST + SECOND) * 1000
DAMAGES: dict[str, tuple[Damage, str]] = {
    "an entry twice": (
        lambda redis, key: redis.rpush(key("entries", **LOG), f"{LATER} E default {FIRST} 1"),
        "2 entries of the log are event",
    ),
    "an entry of no fire": (
        lambda redis, key: redis.rpush(key("entries", **LOG), f"{LATER} E default {FIRST + 7} 1"),
        "and no fire record does",
    ),
    "an entry out of order": (
        lambda redis, key: redis.lpush(key("entries", **LOG), f"{LATER} E default {FIRST} 2"),
        "do not stand in the order of the clock",
    ),
    "an entry of another month": (
        lambda redis, key: redis.rename(key("entries", **LOG), key("entries", month="202601", job_key=KEY)),
        "in 202601 tells of",
    ),
    "an entry ahead of the clock": (
        lambda redis, key: redis.rpush(key("entries", **LOG), f"{2 * LATER} E default {FIRST} 1"),
        "is ahead of the tenant clock",
    ),
    "a skip that has no record": (
        lambda redis, key: redis.rpush(key("entries", **LOG), f"{LATER} S default {FIRST + 9} - 1 paused"),
        "log of what was skipped: has",
    ),
    "a skip that is not told": (
        lambda redis, key: redis.rpush(
            key("fires", month=month(FIRST), trigger="default", job_key=KEY),
            f"{FIRST + 9} skipped paused - 1 one - 1",
        ),
        "log of what was skipped: has nothing too much, lacks",
    ),
    "an end that is not told": (
        lambda redis, key: redis.delete(key("entries", **LOG)),
        "and the log does not tell of it",
    ),
    "a round that has not begun": (
        lambda redis, key: redis.rpush(key("entries", **LOG), f"{LATER} E default {FIRST} 7"),
        "the log tells of round 7",
    ),
    "an end that has not come": (
        lambda redis, key: redis.hset(key("row", id=fire_id("acme", KEY, "default", FIRST)), "s", "pending"),
        "the log tells the end of",
    ),
    "a book that nobody knows": (
        lambda redis, key: redis.zrem(key("books"), f"xl:202609:{KEY}"),
        f"nobody knows of the book xl:202609:{KEY}",
    ),
    "a book ahead of the clock": (
        lambda redis, key: redis.zadd(key("books"), {f"xl:202609:{KEY}": 2 * LATER}),
        "was written ahead of the tenant clock",
    ),
    "a job that is no fire": (
        lambda redis, key: redis.hset(key("row", id=fire_id("acme", KEY, "default", FIRST)), "ft", FIRST + 1),
        "says that it is a planned fire",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_the_invariants_notice(
    name: str, fired: Clockwork, tenure_server: Server, tenure_namespace: str
) -> None:
    fired.end(FIRST, Succeed())
    assert Invariants().broken(dump(tenure_server.redis, tenure_namespace)) == []
    damage, said = DAMAGES[name]

    damage(tenure_server.redis, fired.ledger(START).keys)

    broken = Invariants().broken(dump(tenure_server.redis, tenure_namespace))
    wipe(tenure_server.redis, tenure_namespace)
    assert any(said in one for one in broken), broken
