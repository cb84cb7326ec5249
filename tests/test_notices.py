"""Whoever has a notifier hears of jobs gone dead: of all of them, in few words, and of each once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenure import Tenure
from tenure.lease.jobs import JobView
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.notices import NOTICES, QUIET_MS, TELLER, Notices, Teller
from tenure.lease.outcome import Fail, Lose
from tenure.lease.payload import unpack_args
from tenure.lease.status import runtime_status
from tenure.lease.sweep import Sweep
from tenure.scripts.errors import BadInput, StoreError
from tenure.testing import START, Died, Faults, wait_until

from .given import At, Store, dead, running
from .test_worker import env
from .worker_process import end_all, start_worker

__all__ = ["env"]
GATHER = 10_000
SHOP = Path(__file__).with_name("worker_notified.py")


def die(ledger: Ledger, task: str = "report") -> str:
    lease = running(ledger, task)
    ledger.settle(lease, Fail("broken for good", permanent=True))
    return lease.id


def told(ledger: Ledger) -> list[tuple[object, ...]]:
    """What the telling jobs that a visit makes are about."""
    made = Notices(ledger).tell("outbound")
    return [tuple(unpack_args(ledger.get(job).args)[0]) for job in made]


def test_the_first_death_of_a_kind_is_told_ten_seconds_later_with_all_since(ledger: Ledger, at: At) -> None:
    die(ledger)
    die(at(START + 5_000))

    assert told(at(START + GATHER - 1)) == []
    assert told(at(START + GATHER)) == [("report", "permanent_error", START)]
    assert told(at(START + GATHER)) == [], "once"


def test_deaths_are_gathered_by_task_and_reason(ledger: Ledger, at: At) -> None:
    die(ledger, "report")
    die(ledger, "import")
    lease = running(ledger, "import", fields={"max_lost": "1"})
    ledger.settle(lease, Lose("killed"))

    assert sorted(told(at(START + GATHER))) == [
        ("import", "lost_too_often", START),
        ("import", "permanent_error", START),
        ("report", "permanent_error", START),
    ]


def test_more_of_the_kind_is_told_five_minutes_after_that(ledger: Ledger, at: At) -> None:
    die(ledger)
    told(at(START + GATHER))
    later = START + GATHER + 1
    die(at(later))

    assert told(at(later + GATHER)) == []
    assert told(at(START + GATHER + QUIET_MS - 1)) == []
    assert told(at(START + GATHER + QUIET_MS)) == [("report", "permanent_error", later)]


def test_after_a_quiet_time_it_is_as_if_nothing_had_been_told(ledger: Ledger, at: At) -> None:
    die(ledger)
    told(at(START + GATHER))

    assert told(at(START + GATHER + QUIET_MS)) == []
    assert ledger.index.take(NOTICES, 9).tenants == []
    later = START + GATHER + QUIET_MS + 1
    die(at(later))
    assert told(at(later + GATHER)) == [("report", "permanent_error", later)]


def test_the_index_knows_when_there_is_something_to_tell(ledger: Ledger, at: At) -> None:
    die(ledger)

    assert ledger.index.take(NOTICES, 9).next_due_ms == START + GATHER
    told(at(START + GATHER))
    assert at(START + GATHER).index.take(NOTICES, 9).next_due_ms == START + GATHER + QUIET_MS


def test_the_sweep_finds_what_the_index_lost(ledgers: Ledgers, ledger: Ledger, store: Store) -> None:
    """Also a job that a claim found too late, which tells nobody."""
    ledger.enqueue(NewJob("late", fields={"start_by": "+1"}))
    found = ledger.at(START + 2).claim("advance", "one")
    assert found.leases == []
    assert ledger.index.take(NOTICES, 9).next_due_ms is None

    Sweep(ledgers).round()

    assert ledger.index.take(NOTICES, 9).next_due_ms == START + 2 + GATHER


def test_a_visit_tells_the_pool_that_there_is_work(ledgers: Ledgers, ledger: Ledger, at: At) -> None:
    die(ledger)

    Teller(replace(ledgers, scripts=ledgers.scripts.at(START + GATHER)), "outbound").round()

    (lease,) = at(START + GATHER).claim("outbound", "one").leases
    assert lease.task == TELLER
    assert ledger.index.take("due:outbound", 9).tenants == []


@pytest.mark.parametrize("script", ["index_take", "notices", "notices_told", "index_put"])
@pytest.mark.parametrize("applied", [False, True])
def test_whoever_dies_while_it_tells_each_death_is_told_by_one_job(
    ledgers: Ledgers, ledger: Ledger, at: At, faults: Faults, script: str, applied: bool
) -> None:
    die(ledger)
    (faults.die_after if applied else faults.die_before)(script)
    due = Teller(replace(ledgers, scripts=ledgers.scripts.at(START + GATHER)), "outbound")
    with pytest.raises(Died):
        due.round()

    later = replace(ledgers, scripts=ledgers.scripts.at(START + GATHER + 5_000))
    Sweep(later).round()
    Teller(later, "outbound").round()

    (job,) = ledger.list(task=TELLER).items
    assert unpack_args(job.args)[0] == ["report", "permanent_error", START]
    assert [lease.id for lease in at(START + GATHER + 5_000).claim("outbound", "one").leases] == [job.id]


def test_a_tenant_that_cannot_be_read_holds_up_none_of_the_others(ledgers: Ledgers, store: Store) -> None:
    for tenant in ("broken", "whole"):
        die(ledgers.of(tenant))
    redis: Any = store.redis
    notices = ledgers.of("broken").keys("notices")
    kept = redis.dump(notices)
    redis.set(notices, "garbage")
    teller = Teller(replace(ledgers, scripts=ledgers.scripts.at(START + GATHER)), "outbound")

    with pytest.raises(StoreError):
        teller.round()

    assert [job.task for job in ledgers.of("whole").list(task=TELLER).items] == [TELLER]
    redis.restore(notices, 0, kept, replace=True)


def test_the_death_of_one_who_tells_is_not_told(ledger: Ledger, at: At) -> None:
    die(ledger, TELLER)

    assert told(at(START + GATHER + QUIET_MS)) == []


def test_a_job_whose_owner_handles_failure_is_no_death(ledger: Ledger, at: At) -> None:
    lease = running(ledger, fields={"end_as": "failed"})
    ledger.settle(lease, Fail("no", permanent=True))

    assert told(at(START + GATHER)) == []


def test_two_who_tell_at_once_make_one_job(ledger: Ledger, at: At) -> None:
    die(ledger)
    later = at(START + GATHER)
    one, two = Notices(later), Notices(later)
    seen = one.due()
    two.due = lambda: seen  # type: ignore[method-assign]

    assert (len(one.tell("outbound")), len(two.tell("outbound"))) == (1, 0)


def test_where_nothing_is_dead_any_more_nothing_is_told_or_kept(ledger: Ledger, at: At, store: Store) -> None:
    job = die(ledger)
    ledger.cancel(job)

    assert told(at(START + GATHER)) == []
    assert not [key for key in store.dump() if key.endswith(":nt")]


def test_what_tells_of_deaths_is_no_pool(ledger: Ledger) -> None:
    dead(ledger)

    assert list(runtime_status(ledger).pools) == ["advance"]


def test_each_notifier_hears_what_died_and_is_called_again_when_it_failed(
    app: Tenure, env: dict[str, str], tmp_path: Path
) -> None:
    ledger = app.ledger()
    ago = ledger.at(runtime_status(ledger).read_at - 60_000)
    for _ in range(12):
        die(ago)
    file = tmp_path / "notices"
    more = {"TENURE_APP": "worker_notified:app", "NOTICE_FILE": str(file)}

    worker = start_worker(tmp_path, {**env, **more}, "outbound", slots=1)
    try:
        job = wait_until(lambda: teller(ledger), "the job that tells")
        first = wait_until(lambda: ledger.get(job.id).error, "the failure of the second notifier")
        ledger.reschedule(job.id, when=0)
        wait_until(lambda: ledger.get(job.id).ended, "the end of the second try")
    finally:
        end_all([worker])

    assert "the mail server does not answer" in str(first.error)
    sentence = "12 jobs of report in tenant default died (permanent_error): broken for good"
    assert file.read_text() == f"accounts: {sentence}, 10 named\n", "the first was not called again"
    assert file.with_suffix(".second").read_text() == sentence


def teller(ledger: Ledger) -> JobView | None:
    return next(iter(ledger.list(task=TELLER).items), None)


@pytest.mark.parametrize("wrong", [5, None, "mail"])
def test_what_cannot_be_called_is_no_notifier(app: Tenure, wrong: object) -> None:
    with pytest.raises(BadInput, match="cannot be called"):
        app.notifier()(wrong)  # type: ignore[arg-type]


def test_all_notifiers_have_one_pool(app: Tenure) -> None:
    app.notifier()(print)

    with pytest.raises(BadInput, match="'outbound' already, not in 'advance'"):
        app.notifier(pool="advance")(print)
