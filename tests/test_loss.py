"""A store that has lost data is noticed by every process that has seen more of it, and said once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenure import Ctx, Tenure
from tenure.lease.jobs import REAP, News
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.loss import LossWatch
from tenure.lease.outcome import Succeed
from tenure.lease.witness import LIMIT, Witness
from tenure.scripts import Keys, Scripts
from tenure.scripts.errors import StoreUnreachable
from tenure.testing import START, Faults, dump, wipe

from .given import At, claim, running

MINUTE_MS = 60_000


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelname == "ERROR"]


def put_back(ledger: Ledger, fields: dict[bytes, bytes]) -> None:
    """What a failover to a replica that was behind leaves: here, of the tenant's meta."""
    ledger.scripts.redis.hset(ledger.keys.home, mapping=fields)  # type: ignore[arg-type]


def lose_everything(ledger: Ledger) -> None:
    wipe(ledger.scripts.redis, ledger.keys.namespace)


def lose_and_begin_anew(ledger: Ledger) -> None:
    wipe(ledger.scripts.redis, ledger.keys.namespace)
    Ledgers(ledger.scripts.at(START + MINUTE_MS), ledger.keys.namespace).of("acme").enqueue(NewJob("new"))


LOSSES = [
    pytest.param(lose_everything, "nothing is left of tenant acme", id="all"),
    pytest.param(
        lose_and_begin_anew, "tenant acme was begun anew at 2026-", id="all, and new work has come since"
    ),
]


@pytest.mark.parametrize(("lose", "words"), LOSSES)
def test_a_loss_is_said_once(
    ledgers: Ledgers,
    ledger: Ledger,
    lose: Callable[[Ledger], None],
    words: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger.enqueue(NewJob("report"))
    watch = LossWatch(ledgers)
    watch.round()
    before = errors(caplog)
    lose(ledger)

    for _ in range(3):
        watch.round()

    assert before == []
    assert len(errors(caplog)) == 1
    assert "THE STORE HAS LOST DATA" in errors(caplog)[0]
    assert words in errors(caplog)[0]
    assert "enqueue again what is missing" in errors(caplog)[0]


def test_a_tenant_that_went_back_is_noticed(
    ledgers: Ledgers, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    """A failover to a replica that was behind: its clock is one that somebody has seen pass."""
    ledger.enqueue(NewJob("report"))
    meta = ledger.scripts.redis.hgetall(ledger.keys.home)
    lease = claim(ledger)
    late = Ledgers(ledgers.scripts.at(START + 1), ledgers.namespace)
    late.of("acme").enqueue(NewJob("report"))
    watch = LossWatch(late)
    put_back(ledger, {b"clock": meta[b"clock"]})

    watch.round()

    assert "tenant acme is back at 2026-09-21T" in errors(caplog)[0]
    put_back(ledger, {b"clock": str((START + 1) * 1000 + 1).encode()})
    ledger.settle(lease, Succeed())


def test_one_error_tells_of_all_tenants(
    ledgers: Ledgers, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        ledgers.of(f"tenant-{number}").enqueue(NewJob("report"))
    lose_everything(ledger)

    LossWatch(ledgers).round()

    assert len(errors(caplog)) == 1
    assert "(and 4 more tenants)" in errors(caplog)[0]


def test_the_whole_life_of_a_job_is_no_loss(
    ledgers: Ledgers, ledger: Ledger, at: At, caplog: pytest.LogCaptureFixture
) -> None:
    """Also for a process that hears old news late, and one that came later than others."""
    watch = LossWatch(ledgers)
    lease = running(ledger)
    news = ledger.standing()
    watch.round()
    ledger.settle(lease, Succeed())
    running(ledger)
    ledgers.index.put(news)
    watch.round()
    at(START + 2 * MINUTE_MS).reap()
    watch.round()

    assert errors(caplog) == []


def test_what_a_worker_guesses_before_a_claim_is_not_seen(
    ledgers: Ledgers, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.enqueue(NewJob("report"))
    ledger.index.put([News("acme", REAP, START, version=0)])

    LossWatch(ledgers).round()

    assert errors(caplog) == []


def test_a_tenant_of_an_older_version_which_did_not_say_where_it_began_is_no_loss(
    ledgers: Ledgers, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.enqueue(NewJob("report"))
    ledger.scripts.redis.hdel(ledger.keys.home, "born")

    LossWatch(ledgers).round()

    assert errors(caplog) == []


def test_a_tenant_says_where_it_began_for_ever(ledger: Ledger, at: At) -> None:
    ledger.enqueue(NewJob("report"))
    born = ledger.scripts.redis.hget(ledger.keys.home, "born")

    running(at(START + MINUTE_MS))

    assert born == ledger.scripts.redis.hget(ledger.keys.home, "born") == str(START * 1000).encode()


def test_what_mends_is_called_until_it_succeeds_and_then_no_more(ledgers: Ledgers, ledger: Ledger) -> None:
    calls: list[str] = []

    def mend() -> None:
        calls.append("mend")
        if len(calls) < 3:
            raise StoreUnreachable("the store is away again")

    ledger.enqueue(NewJob("report"))
    lose_everything(ledger)
    watch = LossWatch(ledgers, mend)

    for _ in range(2):
        with pytest.raises(StoreUnreachable):
            watch.round()
    watch.round()
    watch.round()

    assert len(calls) == 3


def test_a_store_that_is_away_has_lost_nothing(
    ledgers: Ledgers, ledger: Ledger, faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.enqueue(NewJob("report"))
    watch = LossWatch(ledgers)
    faults.lose_reply("witness")

    with pytest.raises(StoreUnreachable):
        watch.round()
    watch.round()

    assert errors(caplog) == []


def test_a_tenant_that_cannot_be_read_hides_no_other(
    ledgers: Ledgers, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    for tenant in ("acme", "broken"):
        ledgers.of(tenant).enqueue(NewJob("report"))
    lose_everything(ledger)
    home = Keys(ledgers.namespace, "broken").home
    ledger.scripts.redis.set(home, "garbage")

    LossWatch(ledgers).round()

    assert "nothing is left of tenant acme" in errors(caplog)[0]
    ledger.scripts.redis.delete(home)


def test_a_scheduler_stores_the_codes_schedules_again(app: Tenure) -> None:
    @app.cron("reports.daily", "0 0 2 * * ?")
    def daily(ctx: Ctx) -> None: ...

    app.schedules.declare()
    wipe(app.redis(), app.settings.namespace)
    assert not dump(app.redis(), app.settings.namespace)

    LossWatch(app.ledgers(), app.schedules.declare).round()

    assert [str(view.job_key) for view in app.schedules.list()] == ["reports.daily"]


def test_a_process_remembers_no_more_tenants_than_it_may() -> None:
    witness = Witness()
    for number in range(LIMIT + 5):
        witness.saw(f"t{number}", 7)
        witness.saw("busy", number)

    known = {tenant for tenant, _, _ in witness.some(2 * LIMIT)}

    assert len(known) == LIMIT
    assert {"busy", f"t{LIMIT + 4}"} <= known
    assert "t0" not in known


def test_the_witness_keeps_the_first_and_the_highest_clock_in_whatever_order_they_come() -> None:
    witness = Witness()
    for clock in (5, 9, 3, 7):
        witness.saw("acme", clock)

    assert witness.some(1) == [("acme", 3, 9)]


def test_a_process_that_has_seen_nothing_asks_nothing(faults: Faults, ledgers: Ledgers) -> None:
    LossWatch(Ledgers(Scripts(ledgers.scripts.redis, START, faults), ledgers.namespace)).round()

    assert faults.calls == []
