"""Parts of the worker on a real store, without its processes: what is sent, and what is known after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from redis.exceptions import ConnectionError

from tenure.app import Tenure
from tenure.lease.instances import Instances
from tenure.lease.jobs import DUE, REAP
from tenure.lease.ledger import Ledger, NewJob
from tenure.lease.ledgers import Ledgers
from tenure.lease.loop import Loop
from tenure.lease.outcome import NextChunk, Succeed
from tenure.lease.workers import Slots
from tenure.scripts import Call, Index, Scripts
from tenure.scripts.errors import StoreUnreachable, TenureError
from tenure.scripts.keys import wake_channel
from tenure.testing import Faults, Server, wait_until
from tenure.workers.claims import Claims
from tenure.workers.clock import ServerClock
from tenure.workers.courier import Courier, Post
from tenure.workers.crew import Crew
from tenure.workers.duties import ClockCheck
from tenure.workers.heartbeat import LOOK_S, Heartbeats
from tenure.workers.hints import Due, Listener, Look
from tenure.workers.outbox import Outbox
from tenure.workers.pool import Pool
from tenure.workers.presence import Presence
from tenure.workers.renewals import Renewals
from tenure.workers.row import Row
from tenure.workers.tally import Tally
from tenure.workers.trust import Hold, hold
from tenure.workers.wire import Report, Ticket, Why, decode

from .given import PAUSABLE, running


class EagerPool(Pool):
    """A pool whose slots are always free."""

    def want(self, now: float) -> int:
        return 10


@pytest.fixture
def ledgers(app: Tenure) -> Ledgers:
    return app.ledgers()


@pytest.fixture
def clock(app: Tenure) -> ServerClock:
    clock = ServerClock()
    clock.ask(app.redis())
    return clock


@pytest.fixture
def rows() -> list[Row]:
    return []


@pytest.fixture
def claims(ledgers: Ledgers, clock: ServerClock, rows: list[Row]) -> Claims:
    return Claims(ledgers, clock, [EagerPool("advance", 2, 0.02)], "w1", 2.0, 5_000, rows.append)


def exchange(ledgers: Ledgers, posts: list[Post]) -> None:
    """Send a batch and read its answers."""
    sent_at = ServerClock.monotonic()
    for post, answer in zip(posts, ledgers.scripts.run_all([post.call for post in posts]), strict=True):
        post.read(answer, sent_at)


def test_a_look_finds_the_tenants_and_the_next_batch_claims(
    ledgers: Ledgers, claims: Claims, rows: list[Row]
) -> None:
    ids = {ledgers.of(tenant).enqueue(NewJob("noop")).id for tenant in ("acme", "bolt")}

    exchange(ledgers, claims.posts(claims.next_look()))
    exchange(ledgers, claims.posts(ServerClock.monotonic()))

    assert {row.lease.id for row in rows} == ids


def test_a_worker_that_dies_right_after_its_claim_is_found_by_the_reapers(
    ledgers: Ledgers, clock: ServerClock, claims: Claims
) -> None:
    ledgers.of("acme").enqueue(NewJob("noop"))
    claims.hint("advance", "acme", clock.now_ms() - 1, ServerClock.monotonic())

    # the batch is applied, and nobody reads its answers
    ledgers.scripts.run_all([post.call for post in claims.posts(ServerClock.monotonic())])

    later = Ledgers(ledgers.scripts.at(clock.now_ms() + ledgers.lease_ms + 1_000), ledgers.namespace)
    assert later.index.take(REAP, 10).tenants == ["acme"]
    assert [state for _, state in later.of("acme").reap()] == ["pending"]


def test_an_empty_tenant_leaves_the_index(ledgers: Ledgers, clock: ServerClock, claims: Claims) -> None:
    ledger = ledgers.of("acme")
    ledger.enqueue(NewJob("noop"))
    ledger.claim("advance", "another")
    claims.hint("advance", "acme", clock.now_ms() - 1, ServerClock.monotonic())

    exchange(ledgers, claims.posts(ServerClock.monotonic()))
    exchange(ledgers, claims.posts(ServerClock.monotonic()))

    assert ledgers.index.take(DUE + "advance", 10).tenants == []


class Times:
    """A server whose clock stands at `at`, and whose answers take as long as they are told."""

    def __init__(self, at: float, *seconds: float) -> None:
        self.at = at
        self.seconds = list(seconds)
        self.now = 0.0

    def time(self) -> tuple[int, int]:
        self.now += self.seconds.pop(
            0
        )  # the answer was read late: all of it passed after the server had looked
        return int(self.at), round(self.at % 1 * 1e6)


def test_the_quickest_answer_says_what_time_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    server: Any = Times(1_000.5, 0.012, 0.001, 0.020)
    monkeypatch.setattr("tenure.workers.clock.time.monotonic", lambda: server.now)
    clock = ServerClock()

    clock.ask(server)

    assert clock.local(1_000_500) == pytest.approx(0.0125), "read between 0.012 and 0.013"


def test_a_slow_answer_does_not_say_what_time_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client sends again what is not answered: then nobody knows which of the two was answered."""
    server: Any = Times(1_000.0, 0.001, 0.001, 0.001, 9.0, 9.0, 9.0, 9.0, 0.001, 9.0)
    monkeypatch.setattr("tenure.workers.clock.time.monotonic", lambda: server.now)
    clock = ServerClock()
    clock.ask(server)
    known = clock.local(1_000_000)

    with pytest.raises(StoreUnreachable, match="what time it is"):
        clock.ask(server)

    assert clock.local(1_000_000) == known
    clock.ask(server)
    assert clock.local(1_000_000) > known, "one quick answer is enough"


class Away:
    """A server that cannot be reached."""

    def __getattr__(self, command: str) -> Any:
        def call(*args: Any, **options: Any) -> None:
            raise ConnectionError("Connection closed by server.")

        return call


def test_a_duty_that_cannot_reach_its_server_raises_an_error_of_ours() -> None:
    """A loop tells of such an error in a line, of any other with a traceback."""
    away: Any = Away()
    worker: Any = SimpleNamespace(connection=away, name="w1")
    runner: Any = SimpleNamespace(crew=SimpleNamespace(slots=[], tally=Tally()))

    for duty in (ClockCheck(ServerClock(), Ledgers(Scripts(away), "tn"), 1.0), Presence(worker, runner)):
        with pytest.raises(StoreUnreachable):
            duty.round()


def test_what_may_be_due_is_claimed_at_once(
    ledgers: Ledgers, rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Any = Times(1_000.0, 0.012, 0.012, 0.012)
    monkeypatch.setattr("tenure.workers.clock.time.monotonic", lambda: server.now)
    clock = ServerClock()
    clock.ask(server)
    claims = Claims(ledgers, clock, [EagerPool("advance", 2, 0.02)], "w1", 2.0, 5_000, rows.append)
    now = clock.local(1_000_000) - 0.006

    claims.hint("advance", "acme", 1_000_000, now)
    claims.hint("advance", "bolt", 1_000_100, now)

    scripts = [post.call.script for post in claims.posts(now)]
    assert scripts.count("claim") == 1, "the first may be due, the second is not"


class SlowClock(ServerClock):
    """Believes that the server is a minute behind."""

    def local(self, at_ms: int) -> float:
        return super().local(at_ms) + 60


def test_the_next_chunk_is_due_by_the_servers_clock(ledgers: Ledgers, app: Tenure, rows: list[Row]) -> None:
    clock = SlowClock()
    clock.ask(app.redis())
    claims = Claims(ledgers, clock, [EagerPool("advance", 2, 0.02)], "w1", 2.0, 5_000, rows.append)
    job = ledgers.of("acme").enqueue(NewJob("import", fields={"background": "1"}))
    outbox = Outbox(ledgers, claims.heard)
    while not claims.idle(ServerClock.monotonic()):
        exchange(ledgers, claims.posts(ServerClock.monotonic()))

    outbox.ended(rows.pop(), NextChunk(b"cursor"), now=1.0)
    exchange(ledgers, outbox.posts(1.0))

    assert not claims.idle(ServerClock.monotonic()), "a burst would end here"
    exchange(ledgers, claims.posts(ServerClock.monotonic()))
    assert [row.lease.id for row in rows] == [job.id]


def test_a_worker_is_not_idle_because_it_could_not_ask(
    ledgers: Ledgers, claims: Claims, rows: list[Row]
) -> None:
    job = ledgers.of("acme").enqueue(NewJob("noop"))
    for post in claims.posts(ServerClock.monotonic()):
        post.read(StoreUnreachable("away"), ServerClock.monotonic())

    assert not claims.idle(ServerClock.monotonic())
    exchange(ledgers, claims.posts(claims.next_look()))
    exchange(ledgers, claims.posts(ServerClock.monotonic()))
    assert [row.lease.id for row in rows] == [job.id]


def test_two_pools_of_a_worker_claim_from_one_tenant_in_one_batch(
    tenure_server: Server, tenure_namespace: str, clock: ServerClock, rows: list[Row]
) -> None:
    faults = Faults()
    ledgers = Ledgers(Scripts(tenure_server.redis, faults=faults), tenure_namespace)
    pools: list[Pool] = [EagerPool(name, 2, 0.02) for name in ("advance", "outbound")]
    claims = Claims(ledgers, clock, pools, "w1", 2.0, 5_000, rows.append)
    ids = {ledgers.of("acme").enqueue(NewJob("noop", pool=pool.name)).id for pool in pools}
    for pool in pools:
        claims.hint(pool.name, "acme", 0, ServerClock.monotonic())
    courier = Courier(ledgers.scripts, "courier", lambda: None)
    faults.lose_reply("claim")

    courier.send(claims.posts(ServerClock.monotonic()))
    wait_until(courier.read, "the answers")
    courier.close(1)

    assert faults.calls.count("claim") == 4, "both were sent twice"
    assert {row.lease.id for row in rows} == ids


def test_a_claim_whose_reply_was_lost_is_sent_again_and_answered_the_same(
    tenure_server: Server, tenure_namespace: str, clock: ServerClock, rows: list[Row]
) -> None:
    faults = Faults()
    ledgers = Ledgers(Scripts(tenure_server.redis, faults=faults), tenure_namespace)
    claims = Claims(ledgers, clock, [EagerPool("advance", 2, 0.02)], "w1", 2.0, 5_000, rows.append)
    for _ in range(3):
        ledgers.of("acme").enqueue(NewJob("noop"))
    courier = Courier(ledgers.scripts, "courier", lambda: None)
    claims.hint("advance", "acme", 0, ServerClock.monotonic())
    faults.lose_reply("claim")

    courier.send(claims.posts(ServerClock.monotonic()))
    wait_until(courier.read, "the answers")
    courier.close(1)

    assert faults.calls.count("claim") == 2
    assert len(rows) == 3
    assert [len(ledgers.of("acme").get(row.lease.id).attempts) for row in rows] == [1, 1, 1]


# How far a lease is trusted.


class Deaf:
    """Answers nothing to the first call of a batch, and all to the second."""

    def __init__(self) -> None:
        self.called_at: list[float] = []

    def run_all(self, calls: Sequence[Call[Any]]) -> list[Any]:
        self.called_at.append(ServerClock.monotonic())
        if len(self.called_at) == 1:
            raise StoreUnreachable("the reply was lost")
        return ["granted" for _ in calls]


def test_an_answer_counts_from_the_first_time_it_was_asked_for(ledger: Ledger) -> None:
    """What the second sending is told may have been granted to the first."""
    scripts, answers = Deaf(), list[tuple[str, float]]()
    courier = Courier(cast(Any, scripts), "courier", lambda: None)

    courier.send([Post(ledger.claim_call("advance", "w1", 1, "t"), lambda *answer: answers.append(answer))])
    wait_until(courier.read, "the answer")
    courier.close(1)

    ((answer, sent_at),) = answers
    assert (answer, len(scripts.called_at)) == ("granted", 2)
    assert sent_at <= scripts.called_at[0]


@pytest.mark.parametrize(
    ("expires_at", "deadline", "since", "until"),
    [
        (160.0, 700.0, 100.0, 160.0),
        (169.0, 700.0, 100.0, 160.0),  # granted to the second sending, or to the first: nobody knows
        (140.0, 700.0, 80.0, 140.0),
        (130.0, 130.0, 100.0, 130.0),  # its deadline: it is not lost before, but trusted no longer
    ],
)
def test_a_lease_is_trusted_from_its_call_and_until_its_expiry(
    expires_at: float, deadline: float, since: float, until: float
) -> None:
    lease = cast(Any, SimpleNamespace(deadline=deadline * 1000))

    held = hold(ServerClock(), 60_000, lease, int(expires_at * 1000), 100.0)

    assert held == pytest.approx((since, until), abs=0.01)
    assert held.since <= since
    assert held.until <= until


def test_an_old_answer_to_a_claim_gives_a_row_only_what_is_left_of_its_lease(
    ledgers: Ledgers, clock: ServerClock, claims: Claims, rows: list[Row]
) -> None:
    ledgers.of("acme").enqueue(NewJob("noop"))
    claims.hint("advance", "acme", clock.now_ms() - 1, ServerClock.monotonic())
    posts = claims.posts(ServerClock.monotonic())
    sent_at = ServerClock.monotonic() - 59.0

    for post, answer in zip(posts, ledgers.scripts.run_all([post.call for post in posts]), strict=True):
        post.read(answer, sent_at)

    (row,) = rows
    assert row.held_from <= sent_at
    assert row.held_until <= sent_at + ledgers.lease_ms / 1000
    assert row.fresh_until <= row.held_until


def test_a_row_does_not_begin_after_the_end_of_its_lease(ledger: Ledger) -> None:
    row = Row(1, "advance", running(ledger), Hold(40.0, 100.0), 101.0, 700.0)

    assert row.fresh_until <= 100.0
    assert Ticket(*decode(row.ticket())).held_until == 100.0


def test_a_settle_whose_reply_was_lost_is_sent_again_and_counted_once(
    tenure_server: Server, tenure_namespace: str
) -> None:
    faults = Faults()
    ledgers = Ledgers(Scripts(tenure_server.redis, faults=faults), tenure_namespace)
    ledger = ledgers.of("acme")
    ledger.enqueue(NewJob("noop"))
    lease = ledger.claim("advance", "w1").leases[0]
    outbox = Outbox(ledgers, lambda news: None)
    outbox.ended(Row(1, "advance", lease, Hold(0.0, 0.0), 0.0, 0.0), Succeed(b"r"), now=1.0)
    courier = Courier(ledgers.scripts, "courier", lambda: None)
    faults.lose_reply("settle")

    courier.send(outbox.posts(1.0))
    wait_until(courier.read, "the answers")
    courier.close(1)

    assert faults.calls.count("settle") == 2
    assert outbox.settled
    view = ledger.get(lease.id)
    assert (view.status, [attempt.status for attempt in view.attempts]) == ("succeeded", ["succeeded"])


def test_a_checkpoint_takes_along_what_was_reported_before_it(ledgers: Ledgers) -> None:
    ledger = ledgers.of("acme")
    ledger.enqueue(NewJob("import", fields={"background": "1"}))
    lease = ledger.claim("advance", "w1").leases[0]
    row = Row(1, "advance", lease, Hold(0.0, 0.0), 0.0, 0.0)
    outbox = Outbox(ledgers, lambda news: None)
    answers: list[TenureError | None] = []

    outbox.progress.report(row, Report(None, 300, "row 4", ["a line"]), now=1.0)
    outbox.progress.checkpoint(row, b"cursor", 4, None, "", ack=answers.append)
    exchange(ledgers, outbox.posts(0.0))

    assert answers == [None]
    assert outbox.settled
    progress = ledger.get(lease.id, lines=1).progress
    assert progress is not None
    assert (progress.done, progress.total, progress.message) == (4, 300, "row 4")
    assert [text for _, _, text in progress.lines] == ["a line"]


class Told:
    """A crew and its stops, of which only what renewals say is wanted."""

    def __init__(self) -> None:
        self.kept_rows: list[Row] = []
        self.holds: list[Hold] = []
        self.stops: list[tuple[Row, Why]] = []

    def kept(self, row: Row, hold: Hold) -> None:
        self.kept_rows.append(row)
        self.holds.append(hold)

    def tell(self, row: Row, why: Why) -> None:
        self.stops.append((row, why))


def test_an_old_answer_to_a_renewal_prolongs_from_when_it_was_asked_for(
    ledgers: Ledgers, clock: ServerClock
) -> None:
    ledgers.of("acme").enqueue(NewJob("noop"))
    (lease,) = ledgers.of("acme").claim("advance", "w1").leases
    told: Any = Told()
    (post,) = Renewals(ledgers, clock, told, told).posts([Row(1, "advance", lease, Hold(0, 0), 0.0, 0.0)])
    sent_at = ServerClock.monotonic() - 59.0

    post.read(ledgers.scripts.run(post.call), sent_at)

    (held,) = told.holds
    assert held.since <= sent_at
    assert held.until <= sent_at + ledgers.lease_ms / 1000


def test_a_renewal_tells_whether_a_job_was_canceled_paused_or_taken_over(
    ledgers: Ledgers, clock: ServerClock
) -> None:
    ledger = ledgers.of("acme")
    ids = [ledger.enqueue(NewJob("noop", fields=fields)).id for fields in ({}, {}, PAUSABLE, {})]
    leases = {lease.id: lease for lease in ledger.claim("advance", "w1", 4).leases}
    ours, canceled, paused, lost = (
        Row(1, "advance", leases[job_id], Hold(0.0, 0.0), 0.0, 0.0) for job_id in ids
    )
    ledger.cancel(canceled.lease.id)
    Instances(ledger).pause("order-7")
    ledger.settle(lost.lease, Succeed())
    told: Any = Told()

    exchange(ledgers, Renewals(ledgers, clock, told, told).posts([ours, canceled, paused, lost]))

    assert told.kept_rows == [ours]
    assert told.stops == [(canceled, Why.CANCELED), (paused, Why.PAUSED), (lost, Why.LOST)]


# The subscription.


def listener(app: Tenure) -> Listener:
    """One that has begun to listen."""
    listening = threading.Event()
    channel = wake_channel(app.settings.namespace)
    found = Listener(app.blocking_redis(), channel, frozenset({"advance"}), listening.set)
    assert listening.wait(60)
    return found


def test_a_subscription_ends_at_once_and_leaves_nothing_to_the_application_that_closes(
    app: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracebacks: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", tracebacks.append)
    monkeypatch.setattr("tenure.workers.hints.LISTEN_S", 3600.0)
    one = listener(app)

    one.close()

    assert "tenure-hints" not in [thread.name for thread in threading.enumerate()]
    app.close()
    assert tracebacks == []


def test_a_hint_is_heard_for_the_pools_of_the_worker_only(app: Tenure, clock: ServerClock) -> None:
    one = listener(app)
    later = clock.now_ms() + 60_000
    for pool in ("outbound", "advance"):
        app.ledger("acme").enqueue(NewJob("noop", pool=pool, when=later))

    wait_until(lambda: len(one.heard) == 2, "the hint")
    one.close()

    assert list(one.heard) == [Look(), Due("advance", "acme", later)]


# The loop of background duties.


class Rounds:
    """A duty that does what it is told, round by round."""

    def __init__(self, *rounds: Callable[[], float]) -> None:
        self.rounds = list(rounds)
        self.done = threading.Event()

    def round(self) -> float:
        if not self.rounds:
            self.done.set()
            return 3600.0
        return self.rounds.pop(0)()


def test_a_loop_outlives_rounds_that_fail(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away() -> float:
        raise StoreUnreachable("the store cannot be reached")

    monkeypatch.setattr("tenure.lease.loop.retry_after", lambda failures: 0.0)
    duty = Rounds(lambda: 0.0, away, away, lambda: 0.0)
    loop = Loop(duty, "duty")

    loop.start()

    assert duty.done.wait(60)
    wait_until(lambda: loop.rounds == 3, "the last round")
    assert loop.error is None
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "duty: the store cannot be reached"
    ]
    assert loop.stop(60)


def test_a_loop_is_woken_and_stopped_in_the_middle_of_its_wait() -> None:
    begun: list[Any] = []
    waits = threading.Event()

    def round_() -> float:
        begun.append(None)
        waits.set()
        return 3600.0

    duty = Rounds(round_, round_)
    loop = Loop(duty, "duty")
    loop.start()
    assert waits.wait(60)

    loop.wake()

    wait_until(lambda: len(begun) == 2, "the second round")
    assert loop.stop(60)


# Heartbeats.


def test_a_heartbeat_comes_every_15_s_and_soon_after_a_change(
    ledgers: Ledgers, app: Tenure, claims: Claims
) -> None:
    now, suspended = 1_000.0, False
    pools = [Pool("advance", 4, 0.02)]
    crew = Crew(pools, app.registry, Outbox(ledgers, lambda news: None))
    heartbeats = Heartbeats(ledgers.index, "w1", crew, claims, 3, lambda: suspended, lambda: now)
    register = Index(ledgers.namespace)("workers")

    def told(after_s: float) -> bool:
        """Whether the round at that time told the register anything."""
        nonlocal now
        now = 1_000.0 + after_s
        ledgers.scripts.redis.delete(register)
        assert heartbeats.round() == LOOK_S
        return bool(ledgers.index.workers())

    rounds = [told(0), told(2), told(14.9), told(15), told(17)]
    suspended = True
    rounds += [told(19), told(21)]
    crew.stopping = True
    rounds += [told(23), told(25), told(38)]

    assert rounds == [True, False, False, True, False, True, False, True, False, True]
    (worker,) = ledgers.index.workers()
    assert (worker.state, worker.slots, worker.tasks) == ("stopping", Slots(0, 0), 3)
    assert worker.read_at - worker.started_at >= 38_000


def test_a_worker_that_ends_waits_for_a_store_that_is_away_only_a_moment(
    ledgers: Ledgers, app: Tenure, claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, crew = threading.Event(), Crew([], app.registry, Outbox(ledgers, lambda news: None))
    heartbeats = Heartbeats(ledgers.index, "w1", crew, claims, 3, lambda: False)
    monkeypatch.setattr("tenure.workers.heartbeat.FAREWELL_S", 0.01)
    monkeypatch.setattr(ledgers.index, "beat", lambda *_: waiting.wait(30))

    heartbeats.farewell()

    assert not waiting.is_set(), "it went on though nobody answered"
    waiting.set()
