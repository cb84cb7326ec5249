"""Slots without a store: what ends an attempt, what a slot takes back, and the fork server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenure.lease.jobs import Lease
from tenure.lease.outcome import (
    Continue,
    Done,
    Fail,
    GiveBack,
    Lose,
    NextChunk,
    Outcome,
    Permanent,
    RetryAfter,
    Skip,
    SkipRest,
    Succeed,
)
from tenure.lease.payload import pack
from tenure.lease.redaction import Redaction
from tenure.lease.retry import Retry
from tenure.lease.tasks import Registry, Task
from tenure.scripts.errors import BadInput, Canceled, LeaseLost
from tenure.scripts.states import Cause
from tenure.testing import wait_until
from tenure.workers import Ctx, WorkerOptions, load_application
from tenure.workers.attempt import failed, returned
from tenure.workers.hints import Due, Stop, parse
from tenure.workers.interrupts import OutOfTime
from tenure.workers.naming import worker_name
from tenure.workers.pace import Pace
from tenure.workers.pool import Pool
from tenure.workers.row import Row
from tenure.workers.slot import Slot
from tenure.workers.slot_process import Ends, SlotProcess
from tenure.workers.trust import Hold
from tenure.workers.wire import Ticket, Why, outcome_frame, outcome_of
from tenure.workers.zygote import Born, Died, Zygote

from .worker_process import alive

TASK = Task("report", print)
LEASE = Lease(
    "acme",
    "01J0000000000000000000000A",
    "report",
    7,
    1,
    0,
    0,
    1,
    0,
    0,
    0,
    0,
    0,
    False,
    "",
    None,
    3,
    "trace",
    b"",
    b"",
)


# Outcomes.


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (None, Succeed()),
        (Done(), Succeed()),
        (5, Succeed(pack(5, what=""))),
        (Done([1]), Succeed(pack([1], what=""))),
        (Skip("old"), SkipRest("old")),
        (
            Continue({"at": 1}, done=1, total=2, delay="5s", message="m"),
            NextChunk(pack({"at": 1}, what=""), 1, 2, 5_000, "m"),
        ),
    ],
)
def test_what_is_returned_decides_the_outcome(value: Any, outcome: Outcome) -> None:
    assert returned(value) == outcome


def test_a_result_that_cannot_be_stored_is_not_tried_again() -> None:
    large, odd = returned(bytes(300_000)), returned({"a": object()})

    assert isinstance(large, Fail)
    assert (large.cause, large.permanent) == (Cause.TOO_LARGE, True)
    assert "the limit is 262,144" in large.summary
    assert isinstance(odd, Fail)
    assert (odd.cause, odd.permanent) == (Cause.RAISED, True)


def test_what_is_raised_decides_the_outcome() -> None:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert failed(Skip("old"), TASK, 0) == SkipRest("old")
    asked = failed(RetryAfter("2s", "busy"), TASK, 0)
    assert isinstance(asked, Fail)
    assert replace(asked, failure="") == Fail("RetryAfter: busy", Cause.REFUSED, 2_000)
    for error, cause in (
        (OutOfTime(), Cause.TIMEOUT),
        (ValueError("x"), Cause.RAISED),
        (SystemExit(3), Cause.RAISED),
    ):
        outcome = failed(error, TASK, 1)
        assert isinstance(outcome, Fail)
        assert outcome.cause is cause
        assert 60_000 <= outcome.delay_ms <= 66_000
    outcome = failed(Unprintable(), TASK, 0)
    assert isinstance(outcome, Fail)
    assert outcome.summary == "Unprintable: (its text raised RuntimeError)"


@pytest.mark.parametrize(
    ("error", "permanent"),
    [
        (KeyError("a"), True),
        (LookupError("a base is meant with all that derives from it"), True),
        (Permanent("no such customer"), True),
        (ValueError("x"), False),
        (OutOfTime(), False),
        (RetryAfter("1s"), False),
    ],
    ids=repr,
)
def test_an_error_that_the_task_lists_is_permanent(error: BaseException, permanent: bool) -> None:
    task = Task("t", print, retry=Retry(permanent=(LookupError, TimeoutError)))

    outcome = failed(error, task, 0)

    assert isinstance(outcome, Fail)
    assert outcome.permanent is permanent


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"permanent": ValueError}, "not a tuple of exception types"),
        ({"permanent": ("ValueError",)}, "not a tuple of exception types"),
        ({"permanent": (int,)}, "not a tuple of exception types"),
        ({"then": "succeeded"}, "'succeeded' is not a way to end"),
    ],
)
def test_a_retry_policy_that_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        Retry(**options)


@pytest.mark.parametrize(
    "outcome",
    [
        Succeed(b"r"),
        SkipRest("s"),
        NextChunk(b"c", 1, None, 5, "m"),
        Fail("f", Cause.TIMEOUT, 3, True, "stack", "failure"),
        Lose("l"),
        GiveBack(False, 9),
    ],
)
def test_outcomes_survive_the_pipe(outcome: Outcome) -> None:
    assert outcome_of(outcome_frame(outcome)) == outcome


# The context.


class Link:
    def __init__(self, why: Why | None = None) -> None:
        self.why = why
        self.sent: list[Any] = []

    def stopped(self, ticket: Ticket) -> Why | None:
        return self.why

    def report(self, *said: Any) -> None:
        self.sent.append(said[1:])

    def checkpoint(self, *said: Any) -> None:
        self.sent.append(said[1:])


def ticket(**fields: Any) -> Ticket:
    plain = Ticket(1, "J1", "acme", "report", 7, 2, 0, 3, 0, True, "", None, 0.0, 0.0, 0.0, b"", b"")
    return plain._replace(**fields)


def test_the_context_says_what_the_job_is() -> None:
    ctx = Ctx(
        ticket(fire="f1", fire_time=1_790_000_000_000, cursor=pack({"at": 4}, what="")), Link(), Redaction()
    )

    assert (ctx.job_id, ctx.operation_key, ctx.fence, ctx.attempt, ctx.fire_id) == ("J1", "J1.3", 7, 2, "f1")
    assert ctx.fire_time.isoformat() == "2026-09-21T14:13:20+00:00"
    assert ctx.cursor == {"at": 4}
    assert Ctx(ticket(), Link(), Redaction()).cursor == {}
    with pytest.raises(LookupError, match="made by no fire"):
        _ = Ctx(ticket(), Link(), Redaction()).fire_time


@pytest.mark.parametrize(
    ("why", "error"),
    [
        (Why.CANCELED, Canceled),
        (Why.PAUSED, LeaseLost),
        (Why.LOST, LeaseLost),
        (Why.RELEASED, LeaseLost),
    ],
)
def test_a_job_that_must_stop_can_write_no_checkpoint(why: Why, error: type[Exception]) -> None:
    link = Link(why)
    ctx = Ctx(ticket(), link, Redaction())

    assert ctx.lost
    with pytest.raises(error):
        ctx.checkpoint({"at": 1})
    assert link.sent == []


# What is claimed ahead.


def test_nothing_is_claimed_ahead_of_jobs_that_are_long_or_unknown() -> None:
    pace = Pace()
    pool = Pool("advance", 2, ahead_s=0.02)
    pool.pace = pace

    assert pool.want(now=0) == 0, "a pool without slots wants nothing"
    pace.saw("report", 0.001)
    assert pace.of("other") is None
    pace.saw("report", 1.0)
    assert (pace.of("report") or 0) > 0.5, "one slow job is believed at once"
    for _ in range(20):
        pace.saw("report", 0.001)
    assert (pace.of("report") or 0) > 0.1, "quick ones only slowly"


# Hints, names, options, applications.


def test_hints_are_read_and_unknown_ones_passed_over() -> None:
    assert parse(b"due advance acme 17") == Due("advance", "acme", 17)
    assert parse(b"stop advance acme J1 7") == Stop("advance", "acme", "J1", 7, Why.CANCELED)
    assert parse(b"stop advance acme J1 7 paused") == Stop("advance", "acme", "J1", 7, Why.PAUSED)
    for other in (
        b"due advance acme soon",
        b"stop advance acme J1",
        b"stop advance acme J1 seven",
        b"stop advance acme J1 7 odd",
        b"sing",
        b"",
        b"\xff",
    ):
        assert parse(other) is None


def test_a_workers_name_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "a-very-long-host-name-in-some-cloud.internal.example")

    assert len(worker_name()) <= 40
    assert worker_name().startswith("a-very-long-host-nam.")


def test_an_application_that_fails_shows_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_shop.py").write_text("import no_such_library\n")
    (tmp_path / "wrong_shop.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        load_application("broken_shop:app")
    with pytest.raises(ZeroDivisionError):
        load_application("wrong_shop:app")
    with pytest.raises(BadInput, match=r"no module 'json.decoder.deeper'"):
        load_application("json.decoder.deeper:app")
    monkeypatch.delenv("TENURE_APP", raising=False)
    with pytest.raises(BadInput, match="no application was named"):
        load_application()


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(BadInput, match="slots is 0"):
        WorkerOptions(slots=0)
    with pytest.raises(BadInput, match="slots is 'four'"):
        WorkerOptions().with_slots("four")


# The fork server and a slot.


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    registry = Registry()
    note = tmp_path / "note"

    def wait() -> None:
        note.write_text(str(os.getpid()))
        time.sleep(600)

    async def commits_twice(ctx: Ctx) -> list[str]:
        asked = [ctx.acheckpoint({"at": at}) for at in (1, 2)]
        return [type(one).__name__ for one in await asyncio.gather(*asked, return_exceptions=True)]

    registry.add(Task("commits.twice", commits_twice))
    registry.add(Task("wait", wait))
    registry.add(Task("size", lambda data: len(data)))
    return registry


@pytest.fixture
def zygote(registry: Registry) -> Iterator[Zygote]:
    zygote = Zygote(lambda ends, width: SlotProcess(registry, Ends(*ends), width).run())
    yield zygote
    with suppress(OSError):
        zygote.close()


def row(number: int, task: str, args: bytes = b"") -> Row:
    from dataclasses import replace

    now = time.monotonic()
    hold = Hold(now + 60, now + 120)
    return Row(number, "advance", replace(LEASE, task=task, args=args), hold, now, now + 60)


def give(slot: Slot, *rows: Row) -> None:
    for one in rows:
        assert slot.give(one, time.monotonic())


def next_frame(slot: Slot) -> list[Any]:
    return wait_until(lambda: next(iter(slot.said()), None), "a frame")


def news(zygote: Zygote, kind: type[Any]) -> Any:
    return wait_until(
        lambda: next((one for one in zygote.news() if isinstance(one, kind)), None), kind.__name__
    )


def test_what_a_slot_has_not_begun_is_taken_back_from_it_dead_or_alive(
    zygote: Zygote, tmp_path: Path
) -> None:
    slot = Slot(1, "advance", zygote)
    rows = [row(number, "wait") for number in (1, 2, 3)]
    give(slot, *rows)
    pid = wait_until(
        lambda: (tmp_path / "note").exists() and (tmp_path / "note").read_text(), "the first to run"
    )

    assert slot.take_back() == rows[1:]
    give(slot, rows[1])
    slot.kill(Why.TIMEOUT)
    assert news(zygote, Died) == Died(1, -signal.SIGKILL)
    assert not alive(int(pid))
    assert slot.take_back() == [rows[1]]
    assert list(slot.rows.values()) == [rows[0]], "only the one that ran is to be charged"
    slot.close()


def test_long_arguments_are_handed_over_when_they_are_asked_for(zygote: Zygote) -> None:
    slot = Slot(1, "advance", zygote)
    long = row(1, "size", pack([["x" * 200_000], {}], what="arguments"))
    give(slot, long)

    assert next_frame(slot)[1] == 1
    slot.answer(1, [long.lease.args, b""])
    wait_until(slot.push, "the arguments to be sent")

    assert outcome_of(next_frame(slot)[3]) == Succeed(pack(200_000, what=""))
    slot.close()


@pytest.mark.parametrize("width", [1, 2])
def test_questions_of_one_job_are_answered_in_their_order(zygote: Zygote, width: int) -> None:
    slot = Slot(1, "advance", zygote, width)
    give(slot, row(1, "commits.twice"))
    said: list[list[Any]] = []
    wait_until(lambda: said.extend(slot.said()) or len(said) == 2, "both questions")

    slot.answer(1, None)
    slot.answer(1, "a later claim has taken over")

    assert outcome_of(next_frame(slot)[3]) == Succeed(pack(["NoneType", "StaleFence"], what=""))
    slot.close()


def test_a_ticket_that_has_waited_too_long_is_not_begun(zygote: Zygote) -> None:
    slot = Slot(1, "advance", zygote)
    old = row(1, "wait")
    old.fresh_until = time.monotonic() - 1

    give(slot, old)

    assert next_frame(slot)[1:] == [1]
    slot.close()


def test_a_slot_is_given_nothing_before_it_is_born(zygote: Zygote) -> None:
    slot = Slot(1, "advance", zygote)

    assert not slot.open
    slot.pid = news(zygote, Born).pid
    assert slot.open
    slot.close()


def test_a_slot_is_killed_though_its_fork_server_is_stopped(zygote: Zygote, tmp_path: Path) -> None:
    slot = Slot(1, "advance", zygote)
    pid = news(zygote, Born).pid
    give(slot, row(1, "wait"))
    wait_until((tmp_path / "note").exists, "it to run")
    os.kill(zygote.pid, signal.SIGSTOP)
    assert not zygote.has_ended(pid)

    zygote.kill_directly(pid)

    wait_until(lambda: zygote.has_ended(pid), "the end of the slot")
    assert not alive(pid)
    slot.close()


def test_no_process_but_a_child_of_the_fork_server_is_killed_directly(zygote: Zygote) -> None:
    """By the time it is killed its number may be another's."""
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)

    assert zygote.has_ended(other.pid)
    zygote.kill_directly(other.pid)

    assert alive(other.pid)
    other.kill()
    other.wait()


def test_a_slot_that_hung_up_is_known_to(zygote: Zygote) -> None:
    slot = Slot(1, "advance", zygote)
    slot.pid = news(zygote, Born).pid
    os.kill(slot.pid, signal.SIGKILL)
    news(zygote, Died)

    assert list(slot.said()) == []
    assert slot.gone_at is not None
    assert not slot.open
    slot.close()


def test_no_slot_outlives_the_fork_server(zygote: Zygote) -> None:
    slots = [Slot(key, "advance", zygote) for key in (1, 2)]
    born: list[Born] = []
    while len(born) < 2:
        born += [one for one in zygote.news() if isinstance(one, Born)]

    os.kill(zygote.pid, signal.SIGKILL)

    wait_until(lambda: not any(alive(one.pid) for one in born), "the end of the slots")
    with pytest.raises(EOFError):
        wait_until(lambda: zygote.news() and None, "the news of it")
    for slot in slots:
        slot.close()
