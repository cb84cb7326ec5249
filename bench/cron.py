"""How fast the cron engine is beside croniter: `python bench/cron.py`.

Prints, for 20 typical expressions, fires per second of `next` called again and again; then a year of
minutely fires as one plan; then the worst cases. The last column counts: how many times croniter's rate.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import perf_counter
from zoneinfo import ZoneInfo

from croniter import croniter

from tenure.scheduler.cron import CronExpression

ZONE = "Europe/Berlin"
START = datetime(2026, 1, 1, tzinfo=ZoneInfo(ZONE))
CALLS = 2_000

TYPICAL = """
* * * * *
*/5 * * * *
*/15 * * * *
0 * * * *
30 * * * *
0 */2 * * *
0 */6 * * *
0 0 * * *
30 2 * * *
15 4,16 * * *
0 9 * * 1-5
0 9-17 * * mon-fri
*/10 8-18 * * 1-5
0 12 * * 1
0 0 * * 0
0 0 1 * *
0 6 1,15 * *
0 3 1 1,4,7,10 *
0 0 1 1 *
0 8 1 * 1
""".strip().splitlines()

HARD = ["0 0 0 ? 2 2#5", "0 0 0 29 2 ? 2096", "59 59 23 31 12 ? 2125", "0 0 29 2 *"]


def main() -> None:
    slower = 0.0
    quicker = 0.0
    print(f"{'expression':22} {'croniter/s':>12} {'tenure/s':>12} {'times':>7}")
    for text in TYPICAL:
        theirs, ours = croniter(text, START), CronExpression(text, ZONE)
        slow = best(lambda theirs=theirs: theirs_next(theirs), CALLS)
        quick = best(lambda ours=ours: ours_next(ours), CALLS)
        slower, quicker = slower + slow, quicker + quick
        print(f"{text:22} {1 / slow:12,.0f} {1 / quick:12,.0f} {slow / quick:7.1f}")
    count = len(TYPICAL)
    print(f"{'all of them':22} {count / slower:12,.0f} {count / quicker:12,.0f} {slower / quicker:7.1f}\n")

    year = START + timedelta(days=365)
    fires = sum(1 for _ in CronExpression("* * * * *", ZONE).between(START, year))
    quick = best(
        lambda: sum(1 for _ in CronExpression("* * * * *", ZONE).between(START, year)), fires, rounds=2
    )
    minutely = croniter("* * * * *", START)
    slow = best(lambda: theirs_next(minutely, 50_000), 50_000, rounds=1)
    print(
        f"a year of minutely fires: {fires * quick:.2f} s for {fires:,}, croniter {fires * slow:.1f} s: "
        f"{slow / quick:.1f} times\n"
    )

    for text in HARD:
        began = perf_counter()
        found = CronExpression(text, ZONE).next(datetime(1970, 1, 1, tzinfo=UTC))
        print(f"{text:22} parsed and found {found} in {(perf_counter() - began) * 1000:.2f} ms")


def ours_next(cron: CronExpression, calls: int = CALLS) -> None:
    at = START
    for _ in range(calls):
        found = cron.next(at)
        at = START if found is None or found.year > 2100 else found


def theirs_next(cron: croniter, calls: int = CALLS) -> None:
    cron.set_current(START, force=True)
    for _ in range(calls):
        if cron.get_next(datetime).year > 2100:
            cron.set_current(START, force=True)


def best(work: Callable[[], object], calls: int, rounds: int = 3) -> float:
    """Seconds for one call, in the quickest of a few rounds."""
    taken: list[float] = []
    for _ in range(rounds):
        began = perf_counter()
        work()
        taken.append(perf_counter() - began)
    return min(taken) / calls


if __name__ == "__main__":
    main()
