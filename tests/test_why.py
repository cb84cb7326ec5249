"""Why a job does not run: one verdict of a closed list, the claim's own, in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from tenure.lease.holds import Holds
from tenure.lease.instances import Instances
from tenure.lease.jobs import JobView
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.outcome import Fail, GiveBack, NextChunk, Succeed
from tenure.lease.why import CLAIMABLE, VERDICTS, Why, why, why_now
from tenure.lease.why_instance import VERDICTS as INSTANCE_VERDICTS
from tenure.lease.why_instance import why_instance
from tenure.lease.workers import LIVE_MS, Heartbeat, Slots, WorkerState
from tenure.scripts.errors import InstanceEnded
from tenure.scripts.states import State
from tenure.testing import START

from .given import PAUSABLE, At, canceled, claim, dead, failed, paused, place, running

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


def held(**held: str) -> Callable[[Ledger], str]:
    """A job of what a person holds."""

    def arrange(ledger: Ledger) -> str:
        Holds(ledger).add(**held, reason="stock count", by="ada")  # type: ignore[arg-type]
        return ledger.enqueue(NewJob("report")).id

    return arrange


def rate_limited(ledger: Ledger) -> str:
    first, second = (ledger.enqueue(NewJob("report", fields={"task_rate": "1 60000"})).id for _ in range(2))
    assert claim(ledger).id == first
    return second


def unknown(ledger: Ledger) -> str:
    lease = running(ledger)
    ledger.settle(lease, GiveBack(started=False, unknown=True))
    return lease.id


def unwalked(flag: str) -> Callable[[Ledger], str]:
    """A job whose instance has the flag, while the walk over its jobs has not come to it."""

    def arrange(ledger: Ledger) -> str:
        fields = {**PAUSABLE, "cleared_on_end": "1"}
        ledger.at(START - 1).enqueue(NewJob("report", when="+999999999", fields={"instance": "order-7"}))
        job = ledger.enqueue(NewJob("report", fields=fields))
        Instances(ledger, step=1).begin("order-7", flag, "stock count", "ada")
        return job.id

    return arrange


def behind(key: dict[str, str], *, held: bool) -> Callable[[Ledger], str]:
    """The second job of a key, of which the first runs or waits."""

    def arrange(ledger: Ledger) -> str:
        ledger.enqueue(NewJob("first", id=FIRST, fields=key))
        if held:
            claim(ledger)
        return ledger.enqueue(NewJob("report", fields=key)).id

    return arrange


FIRST = "01JAAAAAAAAAAAAAAAAAAAAAAA"
KEY = {"concurrency_key": "shop:7"}
ALONE = {"instance": "order-7", "exclusive": "1"}

# verdict, a job of which it is true, since when, until when, words of the sentence, what can be done
CASES: list[tuple[str, Callable[[Ledger], str], int | None, int | None, str, list[str]]] = [
    ("claimable", made(), START, None, "free slot of pool advance on a worker that knows report",
     ["reschedule ID --priority 0", "cancel ID"]),
    ("pool_unserved", made(pool="outbound"), START, None, "no live worker serves pool outbound",
     ["worker --pool outbound", "cancel ID"]),
    ("pool_unserved", unknown, START, None, "no live worker serves pool advance",
     ["worker --pool advance", "cancel ID"]),
    ("not_due", made(when="+60000"), START, START + MINUTE, "due at 2026-09-21T14:14:20.000Z",
     ["reschedule ID --now", "cancel ID"]),
    ("not_due", backing_off, START, START + MINUTE, r"failed \(1 of 3 this round, 0 lost\): ValueError: no rows….",
     ["reschedule ID --now", "cancel ID"]),
    ("not_due", between_chunks, START, START + MINUTE, "next chunk is due", ["reschedule ID --now", "cancel ID"]),
    ("expired", made(fields={"start_by": "+0"}), START, None, "Nobody started it by", ["cancel ID"]),
    ("held_tenant", held(), START, None, "jobs of tenant acme are held by ada since .*: stock count",
     ["hold remove --all --tenant acme", "cancel ID"]),
    ("held_pool", held(pool="advance", until="1m"), START, START + MINUTE, "jobs of pool advance are held by ada",
     ["hold remove --pool advance --tenant acme", "cancel ID"]),
    ("held_task", held(task="report"), START, None, "jobs of task report are held by ada",
     ["hold remove --task report --tenant acme", "cancel ID"]),
    ("rate_limited", rate_limited, START, START + MINUTE + 1_000, "task report start at most 1 in 1 m", ["cancel ID"]),
    ("task_unknown", unknown, START, None, "no worker that knows report has come by since", ["cancel ID"]),
    ("key_full", behind(KEY, held=True), START, None,
     rf"key 'shop:7' is held by job {FIRST} on one since 2026-09-21T14:13:20.000Z; at most 1 may",
     [f"cancel {FIRST}", "cancel ID"]),
    ("key_full", behind(ALONE, held=True), START, None, f"alone in instance 'order-7', which is held by job {FIRST}",
     [f"cancel {FIRST}", "cancel ID"]),
    ("behind_others_of_key", behind(KEY, held=False), START, None, "'shop:7' is free, .* others go first: 1 stand",
     ["reschedule ID --priority 0", "cancel ID"]),
    ("state_running", lambda ledger: running(ledger).id, START, START + MINUTE, "runs on one, attempt 1",
     ["watch ID", "cancel ID"]),
    ("state_waiting", placed(State.WAITING), None, None, "waits for the jobs before it", ["skip ID"]),
    ("state_paused", lambda ledger: paused(ledger).id, START, None,
     r"until its instance is resumed: its instance order-7 is suspended since .*Z by ada \(stock count\). .* after 0 s",
     ["resume", "skip ID"]),
    ("instance_suspended", unwalked("suspended"), START, None, "paused as soon as .* order-7 is suspended since",
     ["resume", "skip ID"]),
    ("instance_ended", unwalked("ended"), START, None, "canceled as soon as .* order-7 has ended since",
     ["cancel ID"]),
    ("state_succeeded", succeeded, START, None, "has succeeded", []),
    ("state_dead", lambda ledger: dead(ledger).id, START, None, r"dead \(permanent_error\).*broken for good",
     ["retry ID", "skip ID"]),
    ("state_failed", lambda ledger: failed(ledger).id, START, None, "its owner looks after it",
     ["retry ID", "skip ID"]),
    ("state_canceled", lambda ledger: canceled(ledger).id, START, None, "canceled: not needed", ["retry ID"]),
]  # fmt: skip


@pytest.mark.parametrize(("died", "do"), [(False, []), (True, ["skip ID"])])
def test_what_ended_with_its_instance_is_not_advised_to_be_retried(
    ledger: Ledger, died: bool, do: list[str]
) -> None:
    fields = {**PAUSABLE, "cleared_on_end": "1"}
    if died:
        lease = running(ledger, fields=fields)
        ledger.settle(lease, Fail("broken for good", permanent=True))
    job_id = lease.id if died else ledger.enqueue(NewJob("report", fields=fields)).id
    kept = ledger.enqueue(NewJob("report", fields={"instance": "order-7"}))
    Instances(ledger).end("order-7")
    ledger.cancel(kept.id, "not needed")

    found = why_now(ledger, job_id)

    assert list(found.do) == [written_out(command, job_id) for command in do]
    assert "cannot be retried: its instance has ended" in found.text
    with pytest.raises(InstanceEnded):
        ledger.retry(job_id)
    assert why_now(ledger, kept.id).do == (f"tenure jobs retry {kept.id} --tenant acme",), (
        "its end does not cancel this one"
    )
    ledger.retry(kept.id)


def serve(ledger: Ledger, state: WorkerState = WorkerState.ACTIVE, pool: str = "advance") -> None:
    """A worker says that it is there for jobs of the pool."""
    said = Heartbeat("box", 7, "0.1.0", state, {pool: Slots(0, 4)}, 3, 0, 0, 1_000, None)
    ledger.index.beat("one", said)


def written_out(command: str, job_id: str) -> str:
    if command == "resume":
        return "tenure instances resume --tenant acme order-7"
    return (
        f"tenure {command}"
        if command.startswith(("hold", "worker"))
        else f"tenure jobs {command.replace('ID', job_id)} --tenant acme"
    )


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

    if verdict != "pool_unserved":
        serve(ledger)

    found = why_now(ledger, job_id)

    assert (found.subject, found.verdict) == (f"job {job_id}", verdict)
    assert (found.since, found.next) == (since, until)
    assert re.search(words, found.text), found.text
    assert list(found.do) == [written_out(command, job_id) for command in do]
    states = [check.state for check in found.checks]
    assert states.count("no") == (verdict != CLAIMABLE)
    assert "ok" not in states[states.index("no") :] if "no" in states else states == ["ok"] * len(states)


def test_every_verdict_that_the_claim_knows_is_explained() -> None:
    """Whoever adds a blocker adds its words here."""
    lua = files("tenure.scripts").joinpath("lua", "shared", "blocker.lua").read_text()
    plain = set(re.findall(r"(?:return|paused =|canceled =) '([a-z_]+)'", lua)) - {"state_"}

    assert plain | {f"state_{state}" for state in State} - {"state_pending"} <= set(VERDICTS)
    assert (
        set(VERDICTS) - plain
        == {f"state_{state}" for state in State} - {"state_pending"}
        | {*(CLAIMABLE, "pool_unserved", "task_unknown")} - plain
    )
    assert set(VERDICTS) == {verdict for verdict, *_ in CASES}


@pytest.mark.parametrize(("verdict", "arrange"), [case[:2] for case in CASES if case[0] != "pool_unserved"])
def test_the_claim_agrees(ledger: Ledger, verdict: str, arrange: Callable[[Ledger], str]) -> None:
    """Also that of a worker which does not know a task of which none has come by that does."""
    job_id = arrange(ledger)
    before = why(ledger.get(job_id))

    ignorant = ["report"] if verdict == "task_unknown" else []
    claims = ledger.scripts.run(ledger.claim_call("advance", "another", 9, new_token(), unknown=ignorant))
    taken = [lease.id for lease in claims.leases]

    assert (job_id in taken) == (before.verdict == CLAIMABLE)


@pytest.mark.parametrize(
    ("state", "pool", "age_ms", "verdict"),
    [
        (WorkerState.ACTIVE, "advance", 0, CLAIMABLE),
        (WorkerState.ACTIVE, "advance", LIVE_MS, CLAIMABLE),
        (WorkerState.ACTIVE, "advance", LIVE_MS + 1, "pool_unserved"),
        (WorkerState.ACTIVE, "outbound", 0, "pool_unserved"),
        (WorkerState.STOPPING, "advance", 0, "pool_unserved"),
        (WorkerState.ENDED, "advance", 0, "pool_unserved"),
    ],
)
def test_only_a_live_worker_that_takes_jobs_of_the_pool_serves_it(
    ledger: Ledger, at: At, state: WorkerState, pool: str, age_ms: int, verdict: str
) -> None:
    job_id = ledger.enqueue(NewJob("report")).id
    serve(ledger, state, pool)

    assert why_now(at(START + age_ms), job_id).verdict == verdict


def test_what_the_ledger_says_comes_before_whether_there_are_workers(ledger: Ledger, at: At) -> None:
    job_id = ledger.enqueue(NewJob("report", when="+60000")).id

    assert why_now(ledger, job_id).verdict == "not_due"
    assert why_now(at(START + MINUTE), job_id).verdict == "pool_unserved"


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


# -- an instance ------------------------------------------------------------------------------------------------------


def test_an_instance_tells_of_its_flag_and_of_what_its_jobs_wait_for(ledger: Ledger, at: At) -> None:
    ledger.enqueue(NewJob("report", when="+60000", fields=PAUSABLE))
    ledger.enqueue(NewJob("report", when="+5000", fields={"instance": "order-7"}))

    normal = why_instance(Instances(ledger).get("order-7"))
    suspended = why_instance(Instances(at(START + 1_000)).pause("order-7", "stock count", "ada"))
    ended = why_instance(Instances(at(START + 5_000)).end("order-7"))

    assert [found.verdict for found in (normal, suspended, ended)] == list(INSTANCE_VERDICTS)
    assert normal.text == (
        "It is neither suspended nor ended; its jobs are: 2 pending; the first is due at 2026-09-21T14:13:25.000Z."
    )
    assert (normal.since, normal.next, normal.do) == (None, START + 5_000, ())
    assert re.search(
        r"It is suspended since .* by ada \(stock count\); those of pausable tasks are paused, others go on; its jobs "
        r"are: 1 pending, 1 paused;",
        suspended.text,
    )
    assert (suspended.since, suspended.by, suspended.next) == (START + 1_000, "ada", START + 5_000)
    assert suspended.do == (
        "tenure instances resume --tenant acme order-7",
        "tenure instances end --tenant acme order-7",
    )
    assert (ended.since, ended.next) == (START + 5_000, None)
    assert "due since" in ended.text


def test_an_instance_without_jobs_tells_of_none_that_have_followed(ledger: Ledger) -> None:
    paused = why_instance(Instances(ledger).pause("order-7", "stock count", "ada"))
    resumed = why_instance(Instances(ledger).resume("order-7"))
    ended = why_instance(Instances(ledger).end("order-7"))

    for found in (paused, resumed, ended):
        assert found.text.endswith("; it has no jobs.")
        assert "follow" not in found.text
        assert [check.text for check in found.checks][1] == "there are no jobs to be brought after it"


@pytest.mark.parametrize(("verb", "kept"), [("cancel", "not needed"), ("skip", "skipped: not needed")])
def test_who_canceled_a_job_and_since_when_is_told(ledger: Ledger, at: At, verb: str, kept: str) -> None:
    lease = dead(ledger)
    ledger.retry(lease.id, by="bob")
    getattr(at(START + MINUTE), verb)(lease.id, "not needed", "ada")

    found = why(ledger.get(lease.id))

    assert (found.by, found.since) == ("ada", START + MINUTE)
    assert found.text == f"It was canceled by ada: {kept}."


def test_a_job_that_ended_with_its_instance_names_who_ended_that(ledger: Ledger) -> None:
    job_id = ledger.enqueue(NewJob("report", fields={"instance": "order-7", "cleared_on_end": "1"})).id
    Instances(ledger).end("order-7", "sold out", "ada")

    found = why(ledger.get(job_id))

    assert (found.verdict, found.by) == ("state_canceled", "ada")


def test_a_latest_start_stands_during_a_pause_and_why_says_so_beforehand(ledger: Ledger, at: At) -> None:
    fields = {**PAUSABLE, "start_by": "+60000"}
    now, later = (ledger.enqueue(NewJob("report", when=when, fields=fields)).id for when in (None, "+50000"))
    Instances(ledger).pause("order-7", by="ada")
    beyond = at(START + MINUTE)

    said = {
        job_id: [why(one.get(job_id)).text for one in (ledger, at(START + 20_000), beyond)]
        for job_id in (now, later)
    }

    assert ["in time" in text for text in said[now]] == [False, False, True]
    assert ["in time" in text for text in said[later]] == [False, True, True]
    assert all(
        "Its latest start is 2026-09-21T14:14:20.000Z, which a pause does not move" in text
        for text in said[now]
    )
    assert beyond.reap() == [], "it does not expire while it is paused"
    Instances(beyond).resume("order-7")
    assert [why(beyond.get(job_id)).verdict for job_id in (now, later)] == ["expired", "expired"]
    assert sorted(beyond.reap()) == sorted([(now, "dead"), (later, "dead")])


def test_a_latest_start_is_nothing_to_a_job_that_was_started(ledger: Ledger) -> None:
    lease = running(ledger, fields={**PAUSABLE, "start_by": "+60000"})
    Instances(ledger).pause("order-7")

    assert "latest start" not in why(ledger.get(lease.id)).text


def test_an_instance_whose_jobs_have_yet_to_follow_says_so(ledger: Ledger) -> None:
    job_id = unwalked("suspended")(ledger)

    found = why_instance(Instances(ledger).get("order-7"))

    assert [check.state for check in found.checks] == ["no", "no", "ok"]
    assert "being brought after it" in found.text
    assert ledger.get(job_id).status == "pending"


def test_a_paused_job_that_has_yet_to_follow_a_resumed_instance_says_so(ledger: Ledger) -> None:
    lease = paused(ledger)
    ledger.at(START - 1).enqueue(NewJob("report", when="+999999999", fields={"instance": "order-7"}))
    Instances(ledger, step=1).begin("order-7", "")

    found = why(ledger.get(lease.id))

    assert (found.verdict, found.since) == ("state_paused", None)
    assert "goes on in a moment: its instance order-7 has been resumed" in found.text
    assert [command.split()[1:3] for command in found.do] == [["jobs", "skip"]]


@pytest.mark.parametrize(
    ("name", "argument"), [("a b;c", "'a b;c'"), ("-x", "-- -x"), ("it's", "'it'\"'\"'s'")]
)
def test_a_command_names_an_instance_so_that_a_shell_takes_it(
    ledger: Ledger, name: str, argument: str
) -> None:
    job = ledger.enqueue(NewJob("report", fields={"instance": name, "pausable": "1"}))
    found = why_instance(Instances(ledger).pause(name))

    assert found.do[0] == why(ledger.get(job.id)).do[0] == f"tenure instances resume --tenant acme {argument}"
