"""Jobs of rq-scheduler, made by its own library, become schedules; who fires is switched over and back."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tenure import Tenure
from tenure.scheduler.rq_hand_over import HandOver
from tenure.scheduler.rq_moves import Reading
from tenure.scheduler.rq_store import LOCK, SCHEDULED, OldStore
from tenure.scripts.errors import BadInput, Conflict
from tenure.testing import wait_until

from .given import Store
from .test_plain_pickle import Bomb

rq_scheduler = pytest.importorskip("rq_scheduler")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

UTC_READING = Reading("UTC")
NOTHING = "old_scheduler.nothing"


@pytest.fixture
def old_redis(old_url: str) -> Iterator[Redis]:
    redis = Redis.from_url(old_url)
    yield redis
    redis.close()


@pytest.fixture
def old(old_redis: Redis) -> Iterator[Any]:
    """The old scheduler's library, on a host whose clock shows UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield rq_scheduler.Scheduler(connection=old_redis, interval=1)
    time.tzset()


@pytest.fixture
def hand_over(app: Tenure, old_redis: Redis) -> HandOver:
    @app.task(NOTHING, aliases=["shop.nothing"])
    def nothing(*args: Any, **kwargs: Any) -> None: ...

    @app.task("mail.send")
    def send(to: str, urgent: bool = False) -> None: ...

    return HandOver(OldStore(old_redis, "acme"), app.schedules.of("acme"), app.registry, "ada")


def ahead(**parts: float) -> datetime:
    """An instant, as rq-scheduler takes it: UTC, without a zone."""
    return (datetime.now(UTC) + timedelta(**parts)).replace(tzinfo=None, microsecond=0)


def ms(moment: datetime) -> int:
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)


def names(app: Tenure) -> list[str]:
    return [str(view.job_key) for view in app.schedules.list("acme")]


def scores(redis: Any) -> dict[str, int]:
    return {name.decode(): int(score) for name, score in redis.zrange(SCHEDULED, 0, -1, withscores=True)}


def test_each_kind_of_job_becomes_a_schedule_with_its_next_instant(
    old: Any, hand_over: HandOver, app: Tenure
) -> None:
    once = old.enqueue_at(ahead(hours=3), NOTHING, 1, two={"three": [4]}, job_id="once", queue_name="mail")
    every = old.schedule(ahead(seconds=90), NOTHING, args=[5], interval=90, id="every", timeout=77)
    thrice = old.schedule(ahead(minutes=5), NOTHING, interval=60, repeat=3, id="thrice")
    cron = old.cron(
        "30 3 * * 1-5", NOTHING, id="nightly", meta={"team": "billing", "long": "x" * 300}, repeat=2
    )

    found = hand_over.read(Reading("UTC", pools={"mail": "outbound"}))

    views = {str(view.job_key): view for view in app.schedules.list("acme")}
    assert set(views) == {"once", "every", "thrice", "nightly"}
    for job in (once, every, thrice, cron):
        assert views[job.id].next_fires == {"default": scores(old.connection)[job.id] * 1000}
    rules = {name: view.definition.triggers[0].kind for name, view in views.items()}
    assert rules == {"once": "at", "every": "every", "thrice": "repeat", "nightly": "cron"}
    assert {name: len(app.schedules.next(name, 9, "acme")) for name in views} == {
        "once": 1,
        "every": 9,
        "thrice": 3,
        "nightly": 2,
    }
    assert {view.definition.task for view in views.values()} == {NOTHING}
    assert (views["once"].definition.pool, views["every"].definition.pool) == ("outbound", "advance")
    assert views["every"].definition.fields["timeout"] == "77000"
    assert "billing" in views["nightly"].definition.fields["labels"]
    assert found.moves[-1].notes == ("not carried over: meta.long",)
    assert all(view.disabled for view in views.values())


def test_reading_changes_nothing_of_the_old_scheduler(old: Any, hand_over: HandOver) -> None:
    old.cron("* * * * *", NOTHING, id="minutely")
    before = {key: old.connection.dump(key) for key in old.connection.scan_iter() if b"tenure" not in key}

    hand_over.read(UTC_READING)

    assert {
        key: old.connection.dump(key) for key in old.connection.scan_iter() if b"tenure" not in key
    } == before


def test_the_same_again_changes_nothing_and_later_it_brings_the_copies_up_to_date(
    old: Any, hand_over: HandOver, app: Tenure
) -> None:
    kept = old.cron("0 3 * * *", NOTHING, id="kept")
    gone = old.enqueue_at(ahead(hours=1), NOTHING, job_id="gone")
    hand_over.read(UTC_READING)
    hand_over.read(UTC_READING)
    assert app.schedules.get("kept", "acme").revision == 1

    old.cancel(gone)
    old.change_execution_time(kept, ahead(days=1).replace(hour=3, minute=0, second=0))
    old.enqueue_at(ahead(hours=2), NOTHING, job_id="new")
    hand_over.read(UTC_READING)

    assert names(app) == ["kept", "new"]


def test_what_an_application_adds_at_each_start_becomes_one(
    old: Any, hand_over: HandOver, app: Tenure
) -> None:
    for _ in range(3):
        old.cron("0 3 * * *", NOTHING, args=["a"])
    old.cron("0 3 * * *", NOTHING, args=["b"])
    for _ in range(2):
        old.enqueue_at(ahead(hours=1), NOTHING)

    found = hand_over.read(UTC_READING)

    assert len(names(app)) == 4  # what is planned once is planned each time on purpose
    assert "the same is planned 3 times: it becomes one" in {
        note for move in found.moves for note in move.notes
    }
    assert all(name.startswith(f"{NOTHING}-") for name in names(app))


def test_nothing_is_taken_over_while_something_cannot_be(
    old: Any, hand_over: HandOver, app: Tenure, store: Store, tmp_path: Path
) -> None:
    old.cron("0 3 * * *", NOTHING, id="fine")
    old.enqueue_at(ahead(hours=1), "shop.unknown", job_id="unknown")
    old.enqueue_at(ahead(hours=1), NOTHING, date(2026, 1, 1), job_id="dated")
    old.enqueue_at(ahead(hours=1), NOTHING, {1, 2}, job_id="a-set")
    old.enqueue_at(ahead(hours=1), NOTHING, Bomb(tmp_path / "ran"), job_id="bomb")
    old.enqueue_at(ahead(hours=1), "mail.send", job_id="too-few")
    old.enqueue_at(ahead(hours=1), NOTHING, job_id="called-back", on_success=print)
    old.cron("0 0 z3 * *", NOTHING, id="odd-cron")
    old.enqueue_at(ahead(hours=1), NOTHING, job_id="bad-meta", meta={"when": date(2026, 1, 1)})

    with store.unchanged(), pytest.raises(Conflict, match="8 of 9 jobs cannot be taken over") as refused:
        hand_over.read(UTC_READING)

    problems = {move.old.id: move.problem for move in hand_over.plan(UTC_READING).refused}
    said = {
        "unknown": "no task 'shop.unknown' is registered",
        "dated": "its arguments cannot be taken over: it holds a datetime.date",
        "a-set": "can not serialize 'set' object",
        "bomb": "its arguments cannot be taken over: it holds a posix.mkdir",
        "too-few": "missing a required argument: 'to'",
        "called-back": "it has a callback on success",
        "odd-cron": "'z3' in the field day-of-month has no counterpart",
        "bad-meta": "its meta cannot be taken over: it holds a datetime.date",
    }
    assert problems.keys() == said.keys()
    for job_id, words in said.items():
        assert words in problems[job_id]
        assert f"{job_id} (" in str(refused.value)
    assert not (tmp_path / "ran").exists()
    assert hand_over.state == ""


def test_a_function_with_another_name_here_is_found_by_its_alias_or_a_table(
    old: Any, hand_over: HandOver, app: Tenure
) -> None:
    old.enqueue_at(ahead(hours=1), "shop.nothing", job_id="by-alias")
    old.enqueue_at(ahead(hours=1), "Shop.Send", "ada", job_id="by-table")

    hand_over.read(Reading("UTC", tasks={"Shop.Send": "mail.send"}))

    tasks = {str(view.job_key): view.definition.task for view in app.schedules.list("acme")}
    assert tasks == {"by-alias": NOTHING, "by-table": "mail.send"}


def test_a_wrong_zone_is_found_before_it_does_harm(old: Any, hand_over: HandOver) -> None:
    old.cron("30 3 * * *", NOTHING, id="nightly")

    (refused,) = hand_over.plan(Reading("Asia/Kolkata")).refused

    assert "is that the zone of the old scheduler's host? --tz" in refused.problem
    assert not hand_over.plan(UTC_READING).refused
    with pytest.raises(BadInput, match="Kolkatta"):
        Reading("Asia/Kolkatta")


def test_schedules_of_others_are_neither_replaced_nor_stopped(
    old: Any, hand_over: HandOver, app: Tenure
) -> None:
    old.cron("0 3 * * *", NOTHING, id="nightly")
    app.schedules.put("nightly", task=NOTHING, cron="0 4 * * *", tenant="acme")

    with pytest.raises(Conflict, match="schedule nightly of tenant acme is stored already"):
        hand_over.read(UTC_READING)
    app.schedules.delete("nightly", "acme")
    app.schedules.put("weekly", task=NOTHING, cron="0 4 * * *", tenant="acme")
    with pytest.raises(Conflict, match="tenant acme has schedules that fire, weekly for one"):
        hand_over.read(UTC_READING)
    app.tenants.disable_scheduling("acme")
    hand_over.read(UTC_READING)

    assert names(app) == ["nightly", "weekly"]


def test_over_parks_what_the_old_scheduler_had_and_keeps_it_from_firing(
    old: Any, hand_over: HandOver, app: Tenure
) -> None:
    old.schedule(ahead(minutes=5), NOTHING, interval=60, id="later")
    hand_over.read(UTC_READING)
    old.schedule(ahead(minutes=7), NOTHING, interval=60, id="added-since")

    done = hand_over.over()

    assert (list(done.schedules), done.made_up) == (["added-since", "later"], [])
    assert scores(old.connection) == {}
    assert hand_over.state == "over"
    assert app.tenants.scheduling("acme").enabled
    old.schedule(ahead(seconds=-5), NOTHING, id="added-again")
    assert not old.acquire_lock()  # so a round of an old scheduler fires nothing
    with pytest.raises(Conflict, match="has been switched over already"):
        hand_over.over()
    with pytest.raises(Conflict, match="there is nothing to read"):
        hand_over.read(UTC_READING)


def test_what_came_due_since_the_old_scheduler_stopped_is_made_up_for_once(
    old: Any, hand_over: HandOver, app: Tenure
) -> None:
    late = ahead(seconds=-30)
    old.schedule(late, NOTHING, interval=10, id="every")
    old.schedule(ahead(minutes=-90), NOTHING, interval=3600, repeat=1, id="long-ago")
    hand_over.read(UTC_READING)
    old.enqueue_at(late, NOTHING, 7, job_id="once")
    cron = old.cron("*/2 * * * * * *", NOTHING, id="cron")
    old.connection.zadd(SCHEDULED, {cron.id: ms(late) // 1000 // 2 * 2})

    done = hand_over.over()

    made = dict.fromkeys(key for key, _ in done.made_up)
    assert set(made) == {"every", "long-ago", "once", "cron"}
    instants = [at for key, at in done.made_up if key == "cron"]
    resumed = app.tenants.scheduling("acme").since or 0
    assert instants == list(range(ms(late) // 2000 * 2000, resumed + 1, 2000))
    jobs = app.jobs.list(tenant="acme", limit=100).items
    assert len(jobs) == len(done.made_up) == len(instants) + 3
    assert {job.status for job in jobs} == {"pending"}


def test_of_a_longer_gap_only_the_newest_instant_is_made_up_for(old: Any, hand_over: HandOver) -> None:
    cron = old.cron("0 * * * *", NOTHING, id="hourly")
    hand_over.read(UTC_READING)
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    old.connection.zadd(SCHEDULED, {cron.id: round(hour.timestamp()) - 5 * 3600})

    assert hand_over.over().made_up == [("hourly", round(hour.timestamp()) * 1000)]


def test_it_is_refused_while_an_old_scheduler_lives_or_its_jobs_run_and_both_are_listed(
    old: Any, hand_over: HandOver, app: Tenure, store: Store
) -> None:
    job = old.schedule(ahead(seconds=-1), NOTHING, interval=60, id="busy")
    fired = old.enqueue_at(ahead(seconds=-1), NOTHING, job_id="fired")
    hand_over.read(UTC_READING)
    old.register_birth()
    old.enqueue_jobs()
    list(old.get_jobs_to_queue())
    for one in old.get_jobs_to_queue():
        old.enqueue_job(one)

    with store.unchanged(), pytest.raises(Conflict) as refused:
        hand_over.over()

    assert f"an old scheduler lives: {old.name}" in str(refused.value)
    for one in (job, fired):
        assert f"job {one.id} ({NOTHING}) is queued in queue default" in str(refused.value)
    assert old.connection.get(LOCK) is None
    old.register_death()
    for one in (job, fired):
        one.set_status("finished")
    assert list(hand_over.over().schedules) == ["busy"]


def test_it_is_refused_while_an_old_scheduler_is_at_it_or_the_tenant_is_enabled(
    old: Any, hand_over: HandOver, app: Tenure
) -> None:
    with pytest.raises(Conflict, match="nothing of rq-scheduler has been read into tenant acme"):
        hand_over.over()
    with pytest.raises(Conflict, match="is not switched over"):
        hand_over.back()
    old.cron("0 3 * * *", NOTHING, id="nightly")
    hand_over.read(UTC_READING)
    assert old.acquire_lock()
    with pytest.raises(Conflict, match="an old scheduler is at it"):
        hand_over.over()
    old.remove_lock()
    app.tenants.enable_scheduling("acme")
    with pytest.raises(Conflict, match="both schedulers fire"):
        hand_over.over()

    assert scores(old.connection).keys() == {"nightly"}


def test_back_gives_each_job_with_the_first_instant_that_tenure_has_not_fired(
    old: Any, hand_over: HandOver, app: Tenure
) -> None:
    old.schedule(ahead(minutes=5), NOTHING, interval=60, repeat=3, id="thrice")
    nightly = old.cron("30 3 * * *", NOTHING, id="nightly")
    old.enqueue_at(ahead(seconds=-3), NOTHING, job_id="once")
    old.schedule(ahead(minutes=9), NOTHING, interval=60, id="paused")
    old.schedule(ahead(minutes=9), NOTHING, interval=60, id="deleted")
    hand_over.read(UTC_READING)
    before = scores(old.connection)
    hand_over.over()
    app.schedules.pause("paused", tenant="acme")
    app.schedules.delete("deleted", "acme")
    old.cron("30 3 * * *", NOTHING, id="nightly")
    old.cron("30 3 * * *", NOTHING, id="other")

    given = {one.job_id: one for one in hand_over.back()}

    kept = {"thrice": before["thrice"], "nightly": before["nightly"]}
    assert scores(old.connection) == {**kept, "other": before["nightly"]}
    assert {one.why for one in given.values() if one.job_id in kept} == {""}
    assert given["once"].why == given["deleted"].why == "it has fired for the last time, or was deleted"
    assert given["paused"].why == "it is paused"
    assert not app.tenants.scheduling("acme").enabled
    assert old.acquire_lock()
    assert {job.id: job.meta.get("repeat") for job in old.get_jobs()} == {
        "thrice": 3,
        "nightly": None,
        "other": None,
    }
    assert nightly.func_name == NOTHING


def test_what_was_folded_or_added_again_comes_back_once(old: Any, hand_over: HandOver) -> None:
    for _ in range(2):
        old.cron("30 3 * * *", NOTHING)
    hand_over.read(UTC_READING)
    hand_over.over()
    old.cron("30 3 * * *", NOTHING)

    given = hand_over.back()

    assert len(given) == 3
    assert len(scores(old.connection)) == 1


def test_over_and_back_may_be_repeated(old: Any, hand_over: HandOver) -> None:
    old.cron("30 3 * * *", NOTHING, id="nightly")
    old.schedule(ahead(minutes=5), NOTHING, interval=60, id="every")
    before = scores(old.connection)
    hand_over.read(UTC_READING)

    for _ in range(3):
        hand_over.over()
        hand_over.back()

    assert scores(old.connection) == before
    assert pickle.loads(old.connection.hget("rq:job:every", "meta"))["interval"] == 60


class Died(Exception):
    """The process is gone."""


@pytest.mark.parametrize("step", ["_check_names", "_copy", "_enable", "_make_up"])
def test_over_that_dies_on_its_way_goes_on_when_it_is_given_again(
    old: Any, hand_over: HandOver, app: Tenure, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What comes due between the two is made up for as well, once, unless Tenure fires by then."""
    hourly = old.cron("0 * * * *", NOTHING, id="hourly")
    hand_over.read(UTC_READING)
    old.enqueue_at(ahead(seconds=1), NOTHING, job_id="soon")
    old.connection.zadd(SCHEDULED, {hourly.id: round(time.time()) // 3600 * 3600})
    with monkeypatch.context() as patch:
        patch.setattr(HandOver, step, dying)
        with pytest.raises(Died):
            hand_over.over()
    soon = old.connection.zscore(SCHEDULED, "soon") or old.connection.zscore("rq:tenure:parked:acme", "soon")
    wait_until(lambda: time.time() > soon, "the instant between the two")

    done = hand_over.over()

    expected = {"hourly"} if step == "_make_up" else {"hourly", "soon"}
    assert {key for key, _ in done.made_up} == expected
    assert len(app.jobs.list(tenant="acme").items) == len(expected)
    if step == "_make_up":
        assert app.schedules.get("soon", "acme").next_fires == {"default": int(soon) * 1000}
    assert scores(old.connection) == {}


@pytest.mark.parametrize("call", ["_enable", "_make_up"])
def test_back_also_ends_an_over_that_died(
    old: Any, hand_over: HandOver, app: Tenure, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """What came due is fired by the old scheduler if Tenure never came to it, and else made up for."""
    late = ms(ahead(seconds=-5)) // 1000
    every = old.schedule(ahead(minutes=1), NOTHING, interval=600, id="every")
    hand_over.read(UTC_READING)
    old.connection.zadd(SCHEDULED, {every.id: late})
    with monkeypatch.context() as patch:
        patch.setattr(HandOver, call, dying)
        with pytest.raises(Died):
            hand_over.over()

    hand_over.back()

    never = call == "_enable"
    assert scores(old.connection) == {"every": late if never else late + 600}
    assert len(app.jobs.list(tenant="acme").items) == (0 if never else 1)
    assert not app.tenants.scheduling("acme").enabled


def test_back_that_dies_on_its_way_goes_on_when_it_is_given_again(
    old: Any, hand_over: HandOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.cron("30 3 * * *", NOTHING, id="nightly")
    before = scores(old.connection)
    hand_over.read(UTC_READING)
    hand_over.over()
    with monkeypatch.context() as patch:
        patch.setattr(OldStore, "give_back", dying)
        with pytest.raises(Died):
            hand_over.back()
    assert scores(old.connection) == {}

    hand_over.back()

    assert scores(old.connection) == before


def test_what_changes_while_it_is_parked_is_read_again(
    old: Any, hand_over: HandOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application that adds, moves or cancels a job in the middle of it is heard."""
    old.enqueue_at(ahead(hours=1), NOTHING, job_id="moved")
    old.enqueue_at(ahead(hours=1), NOTHING, job_id="canceled")
    hand_over.read(UTC_READING)
    park, tries = OldStore.park, []

    def late(store: OldStore, *args: Any, **options: Any) -> None:
        if not tries:
            old.cancel("canceled")
            old.connection.zincrby(SCHEDULED, 60, "moved")
            old.enqueue_at(ahead(hours=1), NOTHING, job_id="added")
        tries.append(1)
        park(store, *args, **options)

    monkeypatch.setattr(OldStore, "park", late)

    done = hand_over.over()

    assert (list(done.schedules), len(tries)) == (["added", "moved"], 2)


def test_a_second_tenant_may_follow_one_that_has_frozen_the_old_scheduler(
    old: Any, old_redis: Redis, hand_over: HandOver, app: Tenure
) -> None:
    old.cron("30 3 * * *", NOTHING, id="nightly")
    hand_over.read(UTC_READING)
    hand_over.over()
    old.cron("30 4 * * *", NOTHING, id="other")
    other = HandOver(OldStore(old_redis, "globex"), app.schedules.of("globex"), app.registry, "ada")
    other.read(UTC_READING)

    assert list(other.over().schedules) == ["other"]
    assert not old.acquire_lock()


def test_what_is_added_while_tenure_fires_is_taken_by_going_back_and_over(
    old: Any, hand_over: HandOver
) -> None:
    old.cron("30 3 * * *", NOTHING, id="nightly")
    hand_over.read(UTC_READING)
    hand_over.over()
    late = ahead(seconds=-5)
    old.enqueue_at(late, NOTHING, job_id="added")
    old.enqueue_at(ahead(hours=1), NOTHING, job_id="later")

    hand_over.back()
    done = hand_over.over()

    assert done.made_up == [("added", ms(late))]
    assert list(done.schedules) == ["added", "later", "nightly"]


def test_an_old_scheduler_that_died_between_enqueuing_and_noting_it_has_fired(
    old: Any, hand_over: HandOver, app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = ahead(seconds=-1)
    old.schedule(late, NOTHING, interval=600, repeat=5, id="every")
    old.schedule(late, NOTHING, interval=600, repeat=1, id="last")
    old.enqueue_at(late, NOTHING, job_id="once")
    cron = old.cron("0 * * * *", NOTHING, id="hourly")
    old.connection.zadd(SCHEDULED, {cron.id: round(time.time()) // 3600 * 3600})
    following = round(time.time()) // 3600 * 3600 + 3600
    with monkeypatch.context() as patch:
        patch.setattr(old.connection, "zrem", dying)
        for job in old.get_jobs_to_queue():
            with pytest.raises(Died):
                old.enqueue_job(job)
            job.set_status("finished")
    fired = round(time.time())

    hand_over.read(UTC_READING)
    assert (hand_over.over().made_up, app.jobs.list(tenant="acme").items) == ([], [])
    hand_over.back()

    left = scores(old.connection)
    assert left.keys() == {"every", "hourly"}
    assert left["hourly"] == following
    assert fired + 595 <= left["every"] <= fired + 600
    assert {job.id: job.meta.get("repeat") for job in old.get_jobs()} == {"every": 4, "hourly": None}


def test_what_is_added_again_half_way_over_loses_no_instant(
    old: Any, hand_over: HandOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = ahead(seconds=-5)
    old.schedule(late, NOTHING, interval=600, id="every")
    hand_over.read(UTC_READING)
    with monkeypatch.context() as patch:
        patch.setattr(HandOver, "_enable", dying)
        with pytest.raises(Died):
            hand_over.over()
    old.schedule(ahead(minutes=5), NOTHING, interval=600, id="every")

    assert hand_over.over().made_up == [("every", ms(late))]


def test_what_was_made_up_for_is_not_given_back_though_no_scheduler_has_moved_it(
    old: Any, hand_over: HandOver
) -> None:
    cron = old.cron("*/2 * * * * * *", NOTHING, id="cron")
    hand_over.read(UTC_READING)
    wait_until(lambda: time.time() > scores(old.connection)[cron.id] + 0.1, "an instant of the copy to pass")

    made_up = [at for _, at in hand_over.over().made_up]
    hand_over.back()

    assert made_up
    assert scores(old.connection)[cron.id] * 1000 == made_up[-1] + 2000


def test_a_copy_whose_old_job_has_only_due_instants_left_fires_no_more(
    old: Any, hand_over: HandOver, app: Tenure
) -> None:
    """The old one has drifted: it has fired twice of three times, and the copy has an instant ahead."""
    job = old.schedule(ahead(hours=1), NOTHING, interval=3600, repeat=3, id="thrice")
    hand_over.read(UTC_READING)
    job.meta["repeat"] = 1
    job.save_meta()
    late = ms(ahead(seconds=-5))
    old.connection.zadd(SCHEDULED, {job.id: late // 1000})

    assert hand_over.over().made_up == [("thrice", late)]
    assert names(app) == []
    assert [job.fire_time for job in app.jobs.list(tenant="acme").items] == [late]


def dying(*args: Any, **options: Any) -> Any:
    raise Died
