"""What is said out loud: each change of a background task to its watchers, each job due sooner to the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tenure.lease.jobs import Lease
from tenure.lease.ledger import LEASE_MS, Ledger, NewJob
from tenure.lease.outcome import Fail, GiveBack, Lose, NextChunk, Succeed
from tenure.scripts.errors import StaleFence
from tenure.scripts.keys import wake_channel, watch_channel
from tenure.testing import START, Server

from .given import At, claim, running, unknown_outcome, view
from .listener import Listener

MINUTE = 60_000
BACKGROUND = {"background": "1"}


Listen = Callable[[str], Listener]


@pytest.fixture
def listen(tenure_server: Server) -> Iterator[Listen]:
    listeners: list[Listener] = []

    def to(channel: str) -> Listener:
        listeners.append(Listener(tenure_server.redis, channel))
        return listeners[-1]

    yield to
    for one in listeners:
        one.line.close()


CHANGES: dict[str, Callable[[Ledger, Lease], object]] = {
    "a report": lambda ledger, lease: ledger.report(lease, doing=1),
    "a checkpoint": lambda ledger, lease: ledger.report(lease, cursor=b"c", done=1),
    "success": lambda ledger, lease: ledger.settle(lease, Succeed()),
    "a failure": lambda ledger, lease: ledger.settle(lease, Fail("no luck")),
    "a chunk": lambda ledger, lease: ledger.settle(lease, NextChunk(b"c", done=1)),
    "a return": lambda ledger, lease: ledger.settle(lease, GiveBack()),
    "a loss": lambda ledger, lease: ledger.settle(lease, Lose("exit code -9")),
    "the reaper": lambda ledger, lease: ledger.at(lease.expires_at).reap(),
    "a cancel": lambda ledger, lease: ledger.cancel(lease.id),
}


@pytest.mark.parametrize("change", CHANGES)
def test_watchers_hear_of_each_change_of_a_background_task_once(
    ledger: Ledger, listen: Listen, change: str
) -> None:
    lease = running(ledger, fields=BACKGROUND)
    before = view(ledger, lease).revision
    watcher = listen(watch_channel(ledger.keys.namespace))

    CHANGES[change](ledger, lease)

    assert watcher.heard() == [f"acme {lease.id} {before + 1}"]
    assert view(ledger, lease).revision == before + 1


def test_watchers_hear_of_the_start_the_claim_and_what_a_person_does(ledger: Ledger, listen: Listen) -> None:
    watcher = listen(watch_channel(ledger.keys.namespace))

    job = ledger.enqueue(NewJob("report", fields=BACKGROUND)).id
    assert watcher.heard() == [f"acme {job} 1"]
    ledger.reschedule(job, priority=1)
    assert watcher.heard() == [f"acme {job} 2"]
    lease = claim(ledger)
    assert watcher.heard() == [f"acme {job} 3"]
    ledger.settle(lease, Fail("broken for good", permanent=True))
    assert watcher.heard() == [f"acme {job} 4"]
    ledger.retry(job)
    assert watcher.heard() == [f"acme {job} 5"]


def test_watchers_hear_of_a_persons_word_on_an_outcome(ledger: Ledger, listen: Listen) -> None:
    lease = unknown_outcome(ledger, BACKGROUND)
    watcher = listen(watch_channel(ledger.keys.namespace))

    ledger.confirm(lease.id, happened=False)
    ledger.confirm(lease.id, happened=False)

    assert watcher.heard() == [f"acme {lease.id} 4"]


def test_nobody_watches_a_job_that_is_no_background_task(ledger: Ledger, listen: Listen) -> None:
    watcher = listen(watch_channel(ledger.keys.namespace))

    ledger.settle(running(ledger), Succeed())

    assert watcher.heard() == []


def test_what_is_refused_is_no_news(ledger: Ledger, listen: Listen) -> None:
    lease = running(ledger, fields=BACKGROUND)
    ledger.settle(lease, Fail("no luck", permanent=True))
    watcher = listen(watch_channel(ledger.keys.namespace))

    with pytest.raises(StaleFence):
        ledger.report(lease, doing=1)
    with pytest.raises(StaleFence):
        ledger.settle(lease, Succeed())

    assert watcher.heard() == []


def test_sleeping_workers_are_woken_by_a_job_that_is_due_sooner_and_by_no_other(
    ledger: Ledger, listen: Listen
) -> None:
    worker = listen(wake_channel(ledger.keys.namespace))
    due = f"due advance acme {START + MINUTE}"

    ledger.enqueue(NewJob("report", when=START + MINUTE))
    assert worker.heard() == [due]
    for when in (START + MINUTE, START + 2 * MINUTE):
        ledger.enqueue(NewJob("report", when=when))
    assert worker.heard() == []
    ledger.enqueue(NewJob("report", when=START + MINUTE - 1))
    assert worker.heard() == [f"due advance acme {START + MINUTE - 1}"]
    ledger.enqueue(NewJob("report", pool="outbound", when=START + 2 * MINUTE))
    assert worker.heard() == [f"due outbound acme {START + 2 * MINUTE}"]


def test_workers_are_woken_again_after_a_claim_that_left_nothing_so_early(
    ledger: Ledger, at: At, listen: Listen
) -> None:
    """What a claim leaves is what is told of from then on: it may be later than before, or nothing."""
    running(ledger)
    worker = listen(wake_channel(ledger.keys.namespace))

    later = at(START + MINUTE)
    later.enqueue(NewJob("report", when=START + 3 * MINUTE))
    assert worker.heard() == [f"due advance acme {START + 3 * MINUTE}"]
    claim(at(START + 3 * MINUTE))
    later.enqueue(NewJob("report", when=START + 4 * MINUTE))
    assert worker.heard() == [f"due advance acme {START + 4 * MINUTE}"]


def test_work_taken_back_wakes_its_pool(ledger: Ledger, at: At, listen: Listen) -> None:
    lease = running(ledger, pool="advance")
    worker = listen(wake_channel(ledger.keys.namespace))

    assert at(START + LEASE_MS).reap() == [(lease.id, "pending")]

    assert worker.heard() == [f"due advance acme {START + LEASE_MS}"]
