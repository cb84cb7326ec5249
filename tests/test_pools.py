"""Pools and lanes as they are declared, set and told: who goes before whom, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tenure import Settings, Tenure
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, GiveBack, Lose, Outcome
from tenure.lease.pools import lane_of, lanes_of, width_of
from tenure.lease.tasks import Task
from tenure.scripts.errors import BadInput
from tenure.scripts.states import Cause
from tenure.workers import WorkerOptions
from tenure.workers.offers import Offer, offers_of

URL = "redis://localhost:1"


def shop(lanes: str | None = None) -> Tenure:
    """An application that is never opened."""
    app = Tenure(Settings(redis_url=URL, lanes=lanes))
    app.pool("io", lane="async(50)", slots=2)
    app.task("mail", pool="mail")(print)
    return app


@pytest.mark.parametrize(
    ("settings", "options", "offer"),
    [
        (None, {}, Offer("io", 2, "async(50)")),
        ("io=async(10)", {}, Offer("io", 2, "async(10)")),
        ("io=async(10)", {"lanes": {"io": "exclusive"}}, Offer("io", 2, "exclusive")),
        (None, {"slots": 7}, Offer("io", 7, "async(50)")),
        ("mail = async(3), io = exclusive", {}, Offer("io", 2, "exclusive")),
    ],
)
def test_what_a_worker_is_told_goes_before_the_settings_and_they_before_the_code(
    settings: str | None, options: dict[str, object], offer: Offer
) -> None:
    told = WorkerOptions(**options)  # type: ignore[arg-type]

    assert offers_of(shop(settings), ["io"], told) == [offer]


def test_a_pool_of_which_nothing_is_said_has_four_exclusive_slots() -> None:
    offers = offers_of(shop(), ["advance", "io", "advance"], WorkerOptions())

    assert offers == [Offer("advance", 4, "exclusive"), Offer("io", 2, "async(50)")]
    assert [str(offer) for offer in offers] == ["4 slots in advance", "2 slots of async(50) in io"]
    assert [offer.width for offer in offers] == [1, 50]


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "no lane": (lambda: width_of("threads"), "lane 'threads' is not known"),
    "no number": (lambda: width_of("async"), "lane 'async' is not known"),
    "text": (lambda: width_of("async(many)"), "is not known"),
    "none at a time": (lambda: width_of("async(0)"), "out of range: n is from 1 to 1000"),
    "too many": (lambda: width_of("async(1001)"), "out of range"),
    "another type": (lambda: shop().pool("x", lane=50), "lane 50 is not known"),  # type: ignore[arg-type]
    "a pool that cannot be": (lambda: shop().pool("IO!", lane="async(5)"), "is not a pool name"),
    "no slots": (lambda: shop().pool("x", slots=0), "slots is 0: it must be from 1 to 256"),
    "said twice": (lambda: shop().pool("io", lane="async(5)"), "declared twice, and not alike"),
    "an option": (lambda: WorkerOptions(lanes={"io": "async(0)"}), "out of range"),
    "a setting": (lambda: Settings(redis_url=URL, lanes="io=fast"), "lane 'fast' is not known"),
    "a setting without a lane": (lambda: lanes_of("io"), "'io' names no lane"),
    "a pool set twice": (lambda: lanes_of("io=async(2),io=async(3)"), "names pool 'io' twice"),
    "on the command line": (lambda: lane_of("io="), "lane '' is not known"),
    "an unknown pool in the settings": (
        lambda: offers_of(shop("oi=async(2)"), ["io"], WorkerOptions()),
        "lanes names a lane for the pool 'oi', which this application does not have",
    ),
    "an unknown pool in the options": (
        lambda: offers_of(shop(), ["io"], WorkerOptions(lanes={"oi": "async(2)"})),
        "options names a lane for the pool 'oi'",
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_lane_that_makes_no_sense_is_refused(mistake: str) -> None:
    attempt, says = REFUSED[mistake]

    with pytest.raises(BadInput) as refused:
        attempt()

    assert says in str(refused.value)
    assert refused.value.hint


def test_the_same_may_be_said_of_a_pool_again_and_of_a_pool_that_tasks_name() -> None:
    app = shop()
    app.pool("io", lane="async(50)", slots=2)

    (mail,) = offers_of(app, ["mail"], WorkerOptions(lanes={"mail": "async(1)"}))

    assert mail.width == 1


def test_lanes_are_read_from_the_environment_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "tenure.toml").write_text('lanes = "io=async(5)"\n')
    env = {"TENURE_REDIS_URL": URL}

    assert Settings.load(env, tmp_path).lanes == "io=async(5)"
    assert Settings.load({**env, "TENURE_LANES": "io=exclusive"}, tmp_path).lanes == "io=exclusive"


def test_what_can_run_beside_others_is_known() -> None:
    async def coroutine() -> None: ...

    class Callable_:
        async def __call__(self) -> None: ...

    assert [Task("t", one).is_async for one in (coroutine, Callable_(), print)] == [True, True, False]


# Who must run alone: contract 3, "slot died": 1 of max_lost, which must not be spent by others.


@pytest.mark.parametrize(
    ("outcomes", "fields", "alone"),
    [
        ([], {}, False),
        ([Lose("its process died")], {}, True),
        ([Lose("its worker died", Cause.LEASE_LOST)], {}, False),
        ([Lose("its worker died", Cause.LEASE_LOST)], {"max_lost": 2}, True),
        ([], {"max_lost": 1}, True),
        ([Lose("its process died"), GiveBack()], {}, False),
        ([Fail("raised")], {}, False),
        ([Lose("its worker died", Cause.LEASE_LOST)] * 2, {}, True),
    ],
)
def test_who_may_have_ended_a_process_and_who_must_not_be_lost_again_is_alone(
    ledger: Ledger, outcomes: list[Outcome], fields: dict[str, int], alone: bool
) -> None:
    job = ledger.enqueue(NewJob("report", fields={name: str(value) for name, value in fields.items()}))
    for outcome in outcomes:
        ledger.settle(ledger.claim("advance", "w").leases[0], outcome)

    (lease,) = ledger.claim("advance", "w").leases

    assert (lease.id, lease.alone) == (job.id, alone)
