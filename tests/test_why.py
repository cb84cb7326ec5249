"""Why a job does not run: one verdict of a closed list, the claim's own, in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from tenure.lease.jobs import JobView
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.why import CLAIMABLE, VERDICTS, Why, why
from tenure.scripts.states import State
from tenure.testing import START

from .given import At, canceled, claim, dead, failed, place, running

MINUTE = 60_000


def placed(state: State) -> Callable[[Ledger], str]:
    def arrange(ledger: Ledger) -> str:
        job = ledger.enqueue(NewJob("report"))
        place(ledger, job.id, state)
        return job.id

    return arrange


def made(**job: Any) -> Callable[[Ledger], str]:
    return lambda ledger: ledger.enqueue(NewJob("report", **job)).id


def succeeded(ledger: Ledger) -> str:
    lease = running(ledger)
    ledger.settle(lease, Succeed())
    return lease.id


def backing_off(ledger: Ledger) -> str:
    lease = running(ledger)
    ledger.settle(lease, Fail("ValueError: no rows\nsecond line", delay_ms=MINUTE))
    return lease.id


def between_chunks(ledger: Ledger) -> str:
    lease = running(ledger, fields={"background": "1"})
    ledger.settle(lease, NextChunk(b"c", delay_ms=MINUTE))
    return lease.id


# verdict, a job of which it is true, since when, until when, words of the sentence, what can be done
CASES: list[tuple[str, Callable[[Ledger], str], int | None, int | None, str, list[str]]] = [
    ("claimable", made(), START, None, "free slot of pool advance on a worker that knows report",
     ["reschedule ID --priority 0", "cancel ID"]),
    ("not_due", made(when="+60000"), START, START + MINUTE, "due at 2026-09-21T14:14:20.000Z",
     ["reschedule ID --now", "cancel ID"]),
    ("not_due", backing_off, START, START + MINUTE, r"failed \(1 of 3 this round, 0 lost\): ValueError: no rows….",
     ["reschedule ID --now", "cancel ID"]),
    ("not_due", between_chunks, START, START + MINUTE, "next chunk is due", ["reschedule ID --now", "cancel ID"]),
    ("expired", made(fields={"start_by": "+0"}), START, None, "Nobody started it by", ["cancel ID"]),
    ("state_running", lambda ledger: running(ledger).id, START, START + MINUTE, "runs on one, attempt 1",
     ["watch ID", "cancel ID"]),
    ("state_waiting", placed(State.WAITING), None, None, "waits for the jobs before it", ["skip ID"]),
    ("state_paused", placed(State.PAUSED), None, None, "until its instance is resumed", ["skip ID"]),
    ("state_succeeded", succeeded, START, None, "has succeeded", []),
    ("state_dead", lambda ledger: dead(ledger).id, START, None, r"dead \(permanent_error\).*broken for good",
     ["retry ID", "skip ID"]),
    ("state_failed", lambda ledger: failed(ledger).id, START, None, "its owner looks after it",
     ["retry ID", "skip ID"]),
    ("state_canceled", lambda ledger: canceled(ledger).id, START, None, "canceled: not needed", ["retry ID"]),
]  # fmt: skip


@pytest.mark.parametrize(("verdict", "arrange", "since", "until", "words", "do"), CASES)
def test_each_verdict_says_since_when_until_when_and_what_to_do(
    ledger: Ledger,
    verdict: str,
    arrange: Callable[[Ledger], str],
    since: int | None,
    until: int | None,
    words: str,
    do: list[str],
) -> None:
    job_id = arrange(ledger)

    found = why(ledger.get(job_id))

    assert (found.subject, found.verdict) == (f"job {job_id}", verdict)
    assert (found.since, found.next) == (since, until)
    assert re.search(words, found.text), found.text
    assert list(found.do) == [f"tenure jobs {command.replace('ID', job_id)}" for command in do]
    states = [check.state for check in found.checks]
    assert states.count("no") == (verdict != CLAIMABLE)
    assert "ok" not in states[states.index("no") :] if "no" in states else states == ["ok"] * len(states)


def test_every_verdict_that_the_claim_knows_is_explained() -> None:
    """Whoever adds a blocker adds its words here."""
    lua = files("tenure.scripts").joinpath("lua", "shared", "blocker.lua").read_text()
    plain = set(re.findall(r"return '([a-z_]+)'", lua)) - {"state_"}

    assert plain | {f"state_{state}" for state in State} - {"state_pending"} <= set(VERDICTS)
    assert set(VERDICTS) == {verdict for verdict, *_ in CASES}


@pytest.mark.parametrize(("_verdict", "arrange"), [case[:2] for case in CASES])
def test_the_claim_agrees(ledger: Ledger, _verdict: str, arrange: Callable[[Ledger], str]) -> None:
    job_id = arrange(ledger)
    before = why(ledger.get(job_id))

    taken = [lease.id for lease in ledger.claim("advance", "another", 9).leases]

    assert (job_id in taken) == (before.verdict == CLAIMABLE)


def test_a_lease_that_ended_is_told(ledger: Ledger, at: At) -> None:
    lease = running(ledger)

    found = why(at(lease.expires_at).get(lease.id))

    assert "its lease ended" in found.text.lower()
    assert found.by == "one"


def test_a_retried_job_that_waits_again_tells_of_its_round(ledger: Ledger) -> None:
    lease = dead(ledger)
    ledger.retry(lease.id)
    ledger.settle(claim(ledger), Fail("again", delay_ms=MINUTE))

    assert "Attempt 2 failed (1 of 3 this round" in why(ledger.get(lease.id)).text


def test_a_verdict_from_a_newer_version_is_passed_on(ledger: Ledger) -> None:
    from dataclasses import replace

    view: JobView = replace(ledger.get(made()(ledger)), blocker="held")

    found: Why = why(view)

    assert found.verdict == "held"
    assert found.checks[-1].state == "no"
