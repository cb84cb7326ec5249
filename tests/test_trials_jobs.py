"""Faults that users of other job systems have reported, tried here; the numbers are those of the trials.

Each test is about a kind of fault: work that is lost or stuck, history that is overwritten, poison, values that change
on their way, a job that is made or run twice.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tenure.app import Tenure
from tenure.lease.ids import new_id
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, GiveBack, Lose, Succeed
from tenure.lease.payload import pack_args, unpack_args
from tenure.scripts.errors import BadInput, NotFound, StoreUnreachable, TenureError
from tenure.settings import Settings
from tenure.testing import START, Died, Faults, Server

from .given import At, claim, claimed_ids, running
from .test_worker import Shop, Start, env, shop, worker
from .test_worker_store import OwnServer, server
from .worker_process import start_worker

__all__ = ["env", "server", "shop", "worker"]

MINUTE, DAY = 60_000, 86_400_000
LEASE = 60_000


# -- LOST: lost or stuck ----------------------------------------------------------------------------------------------


def test_rqs_clean_up_of_its_registries_touches_no_job(
    worker: Start, shop: Shop, tenure_server: Server
) -> None:
    """100: successful jobs are not marked as abandoned by somebody else's bookkeeping."""
    from rq import Queue
    from rq.registry import FailedJobRegistry, StartedJobRegistry

    jobs = [shop.make("echo", number) for number in range(300)]
    worker(slots=2)
    queue = Queue("advance", connection=Redis.from_url(str(tenure_server.url)))
    while any(shop.view(job).status != "succeeded" for job in jobs):
        StartedJobRegistry(queue=queue).cleanup()
        FailedJobRegistry(queue=queue).cleanup()

    assert {len(shop.view(job).attempts) for job in jobs} == {1}


def test_work_goes_on_after_connections_are_reset_and_the_server_restarts(
    server: OwnServer, tmp_path: Path
) -> None:
    """104, 106 and 120: three resets in a row, then a restart; ready and delayed jobs all run, once."""
    app = Tenure(Settings(redis_url=server.url))
    shop = Shop(app.ledger())
    worker = start_worker(tmp_path, {"TENURE_REDIS_URL": server.url}, slots=2)
    try:
        shop.ended(shop.make("echo", "first"))
        for _ in range(3):
            Redis(unix_socket_path=str(server.socket)).execute_command("CLIENT", "KILL", "TYPE", "normal")
        ready = [shop.make("echo", number) for number in range(200)]
        delayed = [
            app.ledger().enqueue(NewJob("echo", pack_args([number], {}), when="+1500")).id
            for number in range(200)
        ]
        server.kill()
        server.start()

        views = [shop.ended(job) for job in ready + delayed]

        assert {(view.status, len(view.attempts)) for view in views} == {("succeeded", 1)}
        assert all(view.started_at and view.started_at >= view.run_at for view in views)
        assert worker.stop() == 0
    finally:
        worker.kill()
        app.close()


@pytest.mark.parametrize("when", ["before it starts", "in the middle", "after it ended"])
def test_a_key_that_is_free_at_the_end_outlives_no_crash(ledger: Ledger, at: At, when: str) -> None:
    """108: whatever kills the holder, the key is free when its job has ended, and the holder is shown until then."""
    unique: dict[str, Any] = {"idempotency_key": "report:7", "unique_mode": "active"}
    first = ledger.enqueue(NewJob("report", fields={"max_lost": "1"}, **unique))
    assert ledger.enqueue(NewJob("report", **unique)).id == first.id, "the holder is who the caller gets"
    later = at(START + LEASE)
    if when == "before it starts":
        ledger.cancel(first.id)
    elif when == "in the middle":
        claim(ledger)
        later.reap()
        assert later.get(first.id).dead_reason == "lost_too_often"
    else:
        ledger.settle(claim(ledger), Succeed())

    second = later.enqueue(NewJob("report", **unique))

    assert second.created
    assert second.id != first.id


def test_a_cancel_of_a_job_that_is_not_there_harms_no_job_that_comes_later(ledger: Ledger) -> None:
    """110"""
    job_id = new_id()
    with pytest.raises(NotFound):
        ledger.cancel(job_id)

    ledger.enqueue(NewJob("report", id=job_id))

    assert claimed_ids(ledger, 1) == [job_id]


def test_memory_that_is_refused_is_an_error_like_others(worker: Start, shop: Shop) -> None:
    """144: MemoryError under a limit of the process is raised, counted and on record; the slot goes on."""
    job = shop.make("hog", max_attempts=1)

    worker(slots=1)

    view = shop.ended(job)
    assert (view.dead_reason, [attempt.cause for attempt in view.attempts]) == (
        "attempts_exhausted",
        ["raised"],
    )
    assert shop.ended(shop.make("echo", 1)).status == "succeeded"


def test_a_failure_keeps_its_key_no_longer_than_a_success_would(ledger: Ledger) -> None:
    """112: the window of a key is one rule, whatever the end."""
    for end in (Succeed(), Fail("broken", permanent=True)):
        lease = running(ledger, idempotency_key="k", unique_mode="active")
        ledger.settle(lease, end)

    assert ledger.enqueue(NewJob("report", idempotency_key="k", unique_mode="active")).created


# -- DUP: made or run twice -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay_ms", [2 * LEASE, 10 * LEASE, 30 * DAY])
def test_a_long_delay_is_one_job_that_runs_once_and_not_before(ledger: Ledger, at: At, delay_ms: int) -> None:
    """078: no visibility timeout hands it out again, however often reapers and workers come by."""
    for _ in range(100):
        ledger.enqueue(NewJob("report", when=START + delay_ms))

    for moment in (START, START + delay_ms // 2, START + delay_ms - 1):
        then = at(moment)
        then.reap()
        assert then.claim("advance", "one", 100).leases == []
    due = at(START + delay_ms)
    ran = claimed_ids(due, 200) + claimed_ids(due, 200)

    assert len(ran) == len(set(ran)) == 100


def test_a_call_that_outlasts_the_client_is_sent_again_and_is_one_job(server: OwnServer) -> None:
    """124: the server hangs for longer than the client waits; what was unknown is asked again under its id."""
    app = Tenure(Settings(redis_url=server.url))
    ledger, job = app.ledger(), NewJob("report")
    ledger.counts()
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreUnreachable):
            ledger.enqueue(job)
    finally:
        os.kill(server.process.pid, signal.SIGCONT)

    answers = [ledger.enqueue(job) for _ in range(2)]

    assert {answer.id for answer in answers} == {job.id}
    assert ledger.counts() == {("report", "pending"): 1}
    app.close()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("script", ["enqueue", "index_put", "claim"])
def test_a_delayed_job_whose_helpers_die_on_its_way_is_one_job_and_runs_once(
    ledger: Ledger, at: At, faults: Faults, script: str, when: str
) -> None:
    """080: it is not moved when it is due, so nobody can die in between; a crash at a call leaves one job or none."""
    (faults.die_before if when == "before" else faults.die_after)(script)
    with suppress(Died):
        ledger.enqueue(NewJob("report", when=START + MINUTE))
        at(START + MINUTE).claim("advance", "dies")
    assert faults.calls[-1] == script, "there it died"

    later = at(START + MINUTE + LEASE)
    later.reap()
    ran = claimed_ids(later, 9) + claimed_ids(later, 9)

    assert len(ran) == sum(ledger.counts().values()) == (0 if (script, when) == ("enqueue", "before") else 1)


# -- CLIENT: values and names on their way ----------------------------------------------------------------------------


def test_large_integers_and_floats_come_back_as_they_were(ledger: Ledger, at: At) -> None:
    """126: through enqueue, a delay, a failure, an edit and a retry by hand."""
    values = [
        130775545883395173,
        9007199254740993,
        -1,
        1e-7,
        9223372036854775807,
        1e308,
        [],
        {},
        b"\x00\xff",
        None,
    ]
    job = ledger.enqueue(NewJob("report", args=pack_args(values, {}), when="+1000"))
    later = at(START + 1000)
    lease = claim(later)
    assert unpack_args(lease.args) == (values, {})
    later.settle(lease, Fail("no luck", permanent=True))
    later.retry(job.id, args=pack_args([*values, 1], {}))

    again = claim(later)

    assert unpack_args(again.args) == ([*values, 1], {})
    assert [type(value) for value in unpack_args(again.args)[0]][:5] == [int, int, int, float, int]


@pytest.mark.parametrize("name", ["123", "a:b", "{x}", "a b", "🚀", "*", "x" * 300, "a\nb"])
def test_any_text_may_be_a_key_and_is_never_part_of_a_key_name(
    ledger: Ledger, name: str, server_names: Any
) -> None:
    """128: idempotency keys are the user's data."""
    first = ledger.enqueue(NewJob("report", idempotency_key=name))

    assert ledger.enqueue(NewJob("report", idempotency_key=name)).id == first.id
    assert ledger.get(first.id).idempotency_key == name
    assert not [key for key in server_names() if name.encode() in key and len(name) > 3]


@pytest.fixture
def server_names(tenure_server: Server, tenure_namespace: str) -> Callable[[], list[bytes]]:
    def names() -> list[bytes]:
        return list(tenure_server.redis.scan_iter(match=f"{tenure_namespace}*"))

    return names


# -- HIST: attempts and history ---------------------------------------------------------------------------------------


def test_a_deploy_burns_no_attempt_and_a_kill_is_counted_apart(ledger: Ledger, at: At) -> None:
    """138: with one attempt in all, ten graceful stops and two kills leave the job its attempt."""
    ledger.enqueue(NewJob("report", fields={"max_attempts": "1"}))
    for _ in range(10):
        ledger.settle(claim(ledger), GiveBack())
    for _ in range(2):
        ledger.settle(claim(ledger), Lose("the process died"))

    lease = claim(ledger)

    view = ledger.get(lease.id)
    assert (view.failures, view.losses) == (0, 2)
    assert [attempt.cause for attempt in view.attempts] == ["released"] * 10 + ["killed"] * 2 + [None]
    ledger.settle(lease, Fail("broken"))
    assert ledger.get(lease.id).dead_reason == "attempts_exhausted"


def test_attempts_over_days_are_all_on_record_and_only_their_own_limit_ends_them(
    ledger: Ledger, at: At
) -> None:
    """140: a try each ten minutes for three days."""
    ledger.enqueue(NewJob("report", fields={"max_attempts": "432"}))
    now = START
    for _ in range(432):
        lease = claim(at(now))
        at(now).settle(lease, Fail("not yet", delay_ms=10 * MINUTE))
        now += 10 * MINUTE

    view = at(now).get(lease.id)

    assert (view.status, view.dead_reason) == ("dead", "attempts_exhausted")
    assert [attempt.number for attempt in view.attempts] == list(range(1, 433))
    assert view.attempts[0].started_at == START


@pytest.mark.parametrize("renew_ms", [30_000, 45_000, 60_000, 61_000])
def test_a_renewal_that_may_come_too_late_is_refused_at_the_start(renew_ms: int) -> None:
    """142: a lease must outlast two renewals."""
    with pytest.raises(BadInput, match="renew"):
        Settings.load(
            {"TENURE_LEASE_MS": "60000", "TENURE_RENEW_MS": str(renew_ms), "HOME": "/tmp"}, Path("/tmp")
        )


# -- POISON -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("poison", ["exit", "segfault", "overflow"])
def test_what_kills_its_process_is_dead_in_the_end_and_takes_nobody_along(
    worker: Start, shop: Shop, poison: str
) -> None:
    """144: os._exit, a segmentation fault, an overflow of the C stack."""
    bad = shop.make(poison, *([11] if poison == "exit" else []), max_lost=2)
    good = [shop.make("echo", number) for number in range(50)]

    worker(slots=2)

    view = shop.ended(bad)
    assert (view.status, view.dead_reason, view.failures) == ("dead", "lost_too_often", 0)
    assert {shop.ended(job).status for job in good} == {"succeeded"}
    assert {len(shop.view(job).attempts) for job in good} == {1}
    assert shop.ledger.retry(bad), "an operator can try it again"


def test_a_cancel_between_two_crashes_holds(ledger: Ledger, at: At) -> None:
    """146: poison is stopped by its operator, and no reaper or late outcome brings it back."""
    first = running(ledger)
    later = at(START + LEASE)
    later.reap()
    second = claim(later)
    later.cancel(second.id, "it eats its workers")

    end = at(START + 3 * LEASE)
    end.reap()
    with pytest.raises(TenureError):
        end.settle(second, Lose("died again"))

    assert end.claim("advance", "one").leases == []
    assert (end.get(first.id).status, end.get(first.id).reason) == ("canceled", "it eats its workers")
