"""What people did to a job is kept with it: one entry for each change, none for what changed nothing (I5)."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import Any

import pytest

from tenure.lease.batches import Batches
from tenure.lease.instances import Instances
from tenure.lease.jobs import Deed
from tenure.lease.ledger import HISTORY, Ledger, NewJob
from tenure.lease.outcome import Fail, Succeed
from tenure.lease.who import BY_LIMIT, REASON_LIMIT, whoami
from tenure.scripts.errors import BadInput, StoreUnreachable, WrongState
from tenure.scripts.states import BY_HAND
from tenure.testing import START, Faults

from .given import PAUSABLE, At, Store, claim, dead, paused, running, succeeded, unknown_outcome, view

BATCH = "01J00000000000000000000000"
HAND: dict[str, Callable[..., object]] = {
    "retry": lambda ledger, job_id, **word: ledger.retry(job_id, **word),
    "replay": lambda ledger, job_id, **word: Batches(ledger).run(BATCH, **word),
    "cancel": lambda ledger, job_id, **word: ledger.cancel(job_id, **word),
    "skip": lambda ledger, job_id, **word: ledger.skip(job_id, **word),
    "reschedule": lambda ledger, job_id, **word: ledger.reschedule(job_id, priority=1, **word),
    "confirm": lambda ledger, job_id, by="", reason="": ledger.confirm(job_id, True, reason, by),
    "pause": lambda ledger, job_id, **word: Instances(ledger).pause("order-7", **word),
    "resume": lambda ledger, job_id, **word: Instances(ledger).resume("order-7", **word),
}
SCRIPTS = {"skip": "cancel", "pause": "instance_flag", "resume": "instance_flag", "replay": "batch_work"}


def stopped(ledger: Ledger, verb: str) -> str:
    """A job that `verb` may be done to."""
    match verb:
        case "reschedule":
            return ledger.enqueue(NewJob("report", when="+1000")).id
        case "replay":
            job_id = dead(ledger).id
            Batches(ledger).plan("retry", "replay", [(job_id, None, "")], batch_id=BATCH)
            return job_id
        case "pause":
            return ledger.enqueue(NewJob("report", fields=PAUSABLE)).id
        case "resume":
            return paused(ledger).id
        case "confirm":
            return unknown_outcome(ledger).id
        case _:
            return dead(ledger).id


def test_every_verb_is_tried() -> None:
    assert set(HAND) == set(BY_HAND)


@pytest.mark.parametrize("verb", HAND)
def test_what_a_person_does_is_kept_with_who_when_and_why(ledger: Ledger, at: At, verb: str) -> None:
    job_id = stopped(ledger, verb)
    before = ledger.get(job_id)

    HAND[verb](at(START + 500), job_id, by="ada@shop-1", reason="no such\nshop")

    found = ledger.get(job_id)
    said = "happened: no such\nshop" if verb == "confirm" else "no such\nshop"
    assert [deed.verb for deed in before.history] == (["pause"] if verb == "resume" else [])
    assert found.history[len(before.history) :] == (
        Deed(before.revision + 1, START + 500, verb, "ada@shop-1", said),
    )
    assert found.revision == before.revision + 1


@pytest.mark.parametrize("verb", HAND)
def test_what_is_sent_again_is_kept_once(ledger: Ledger, faults: Faults, verb: str) -> None:
    """A retry is known again by its token: without one it is another, and refused."""
    job_id = stopped(ledger, verb)
    words = {"by": "ada", "token": "one"} if verb == "retry" else {"by": "ada"}
    faults.lose_reply(SCRIPTS.get(verb, verb))
    with pytest.raises(StoreUnreachable):
        HAND[verb](ledger, job_id, **words)

    HAND[verb](ledger, job_id, **words)

    verbs = [deed.verb for deed in ledger.get(job_id).history]
    assert verbs == (["pause", "resume"] if verb == "resume" else [verb])


def test_the_attempts_and_the_history_together_tell_of_every_transition(ledger: Ledger) -> None:
    """I5: enqueue 1; claim, dead 2; retry 1; claim, dead 2; skip 1; retry 1; claim, succeed 2."""
    lease = dead(ledger)
    ledger.retry(lease.id)
    ledger.settle(claim(ledger), Fail("broken", permanent=True))
    ledger.skip(lease.id)
    ledger.retry(lease.id)
    ledger.settle(claim(ledger), Succeed())

    found = view(ledger, lease)

    assert [(deed.revision, deed.verb) for deed in found.history] == [(4, "retry"), (7, "skip"), (8, "retry")]
    assert found.revision == 1 + 2 * len(found.attempts) + len(found.history)


def test_what_is_refused_is_not_kept(ledger: Ledger, store: Store) -> None:
    lease = succeeded(ledger)

    with store.unchanged(), pytest.raises(WrongState):
        ledger.cancel(lease.id, "too late", "ada")


def test_the_newest_entries_are_kept(ledger: Ledger) -> None:
    job = ledger.enqueue(NewJob("report", when="+1"))
    for number in range(HISTORY + 3):
        ledger.reschedule(job.id, when=f"+{number + 2}")

    history = ledger.get(job.id).history

    assert [deed.revision for deed in history] == list(range(5, HISTORY + 5))


def test_a_list_leaves_the_histories_out(ledger: Ledger) -> None:
    lease = dead(ledger)
    ledger.skip(lease.id)

    (job,) = ledger.list().items

    assert (job.id, job.history) == (lease.id, ())


WORDS: list[tuple[str, dict[str, Any]]] = [
    ("too long a name", {"by": "a" * (BY_LIMIT + 1)}),
    ("a name of two lines", {"by": "ada\nada"}),
    ("a name that is none", {"by": 7}),
    ("half a character in a name", {"by": "\ud800"}),
    ("too long a reason", {"reason": "a" * (REASON_LIMIT + 1)}),
    ("half a character in a reason", {"reason": "\ud800"}),
]


@pytest.mark.parametrize("word", [word for _, word in WORDS], ids=[what for what, _ in WORDS])
@pytest.mark.parametrize("verb", HAND)
def test_a_word_that_cannot_be_kept_is_refused(
    ledger: Ledger, store: Store, verb: str, word: dict[str, Any]
) -> None:
    job_id = stopped(ledger, verb)

    with store.unchanged(), pytest.raises(BadInput):
        HAND[verb](ledger, job_id, **word)


def test_who_nobody_named_is_this_user_on_this_machine() -> None:
    assert whoami().startswith(f"{getpass.getuser()}@")


def test_a_history_goes_with_its_job(ledger: Ledger, at: At, store: Store) -> None:
    lease = running(ledger)
    ledger.cancel(lease.id)
    ledger.retry(lease.id)
    ledger.settle(claim(ledger), Succeed())
    tomorrow = at(START + 86_400_001)

    tomorrow.settle(running(tomorrow, "other"), Succeed())

    assert not [name for name in store.dump() if lease.id in name]
