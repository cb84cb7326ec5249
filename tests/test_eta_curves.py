"""The estimate against curves of real tasks (`tests/curves/record.py`), played again through a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tenure.lease.eta import Eta, remaining
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.outcome import Fail, NextChunk

from .given import START, claim, running

Curve = list[tuple[int, int]]
CURVES = {
    path.stem: [(int(ms), int(done)) for ms, done in map(str.split, path.read_text().splitlines())]
    for path in sorted((Path(__file__).parent / "data" / "curves").glob("*.txt"))
}
EVEN_OR_SLOWING = [name for name in CURVES if name.startswith(("steady.", "slowing."))]
FROM = 0.1
"""A number is told from this share of the work."""


@dataclass(frozen=True)
class Look:
    """What was told at a commit, and what was true."""

    share: float
    eta: Eta
    truth_ms: int

    @property
    def covered(self) -> bool:
        return self.eta.low_ms <= self.truth_ms <= self.eta.high_ms


def looks(ledger: Ledger, curve: Curve, until: float = 1.0) -> list[Look]:
    """Work a task off as it was recorded; what is told at each fourth commit from which a number is."""
    end, total = curve[-1]
    lease = running(ledger, fields={"background": "1"})
    found: list[Look] = []
    for nth, (ms, done) in enumerate(curve[:-1]):
        then = ledger.at(START + ms)
        then.report(lease, cursor=b"c", done=done, total=total)
        if nth % 4 == 3 and done >= total * FROM:
            eta = remaining(then.get(lease.id))
            assert eta is not None, f"no number at {done} of {total}"
            found.append(Look(done / total, eta, end - ms))
        if done >= total * until:
            break
    return found


@pytest.mark.parametrize("name", EVEN_OR_SLOWING)
def test_after_a_fifth_of_the_work_the_likely_time_is_within_a_quarter_of_the_truth(
    ledger: Ledger, name: str
) -> None:
    told = looks(ledger, CURVES[name], until=0.2)[-1]

    assert told.share == pytest.approx(0.2, abs=0.02)
    assert told.eta.likely_ms == pytest.approx(told.truth_ms, rel=0.25)


def test_the_range_covers_the_truth_in_four_of_five_curves(ledger: Ledger) -> None:
    told = {name: looks(ledger, curve) for name, curve in CURVES.items()}

    at_a_fifth = {
        name: next(look for look in found if look.share >= 0.2).covered for name, found in told.items()
    }
    everywhere = [look.covered for found in told.values() for look in found]
    assert sum(at_a_fifth.values()) >= 0.8 * len(CURVES), at_a_fifth
    assert sum(everywhere) >= 0.8 * len(everywhere), {
        name: sum(look.covered for look in found) / len(found) for name, found in told.items()
    }


@pytest.mark.parametrize(("delay", "again"), [(2_000, False), (500, False), (2_000, True)])
def test_waits_that_a_task_asks_for_are_part_of_its_pace(ledger: Ledger, delay: int, again: bool) -> None:
    """Between two chunks, and where `again`, before each second attempt: 20 ms of work, and then it waits."""
    chunks, now = 30, START
    ledger.enqueue(NewJob("report", fields={"background": "1", "max_attempts": "100"}))
    ends: list[tuple[int, Eta | None]] = []
    for done in range(1, chunks):
        if again and done % 2:
            lease = claim(ledger.at(now))
            now += 20
            ledger.at(now).settle(lease, Fail("no", delay_ms=delay))
            now += delay
        lease = claim(ledger.at(now))
        now += 20
        ledger.at(now).settle(lease, NextChunk(b"c", done=done, total=chunks, delay_ms=delay))
        for part in (0, delay // 2, delay - 1):
            ends.append((now + part, remaining(ledger.at(now + part).get(lease.id))))
        now += delay
    end = now + 20

    told = [(at, eta) for at, eta in ends if eta is not None]
    assert len(told) > len(ends) * 0.7
    for at, eta in told:
        assert at + eta.low_ms - 250 <= end <= at + eta.high_ms, f"{end - at} ms before the end: {eta}"
        assert eta.likely_ms == pytest.approx(end - at, rel=0.25, abs=delay * 1.2)


def test_one_long_wait_is_waited_for_and_not_expected_again(ledger: Ledger) -> None:
    ledger.enqueue(NewJob("report", fields={"background": "1"}))
    now, hour = START, 3_600_000
    for done in range(1, 21):
        lease = claim(ledger.at(now))
        now += 1_000
        ledger.at(now).settle(lease, NextChunk(b"c", done=done, total=40, delay_ms=hour if done == 20 else 0))

    before = remaining(ledger.at(now).get(lease.id))
    after = remaining(ledger.at(now + hour).get(lease.id))

    assert before is not None
    assert after is not None
    assert before.likely_ms == pytest.approx(hour + 20_000, abs=3_000)
    assert after.likely_ms == pytest.approx(20_000, abs=3_000)
