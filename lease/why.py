"""Why a job does not run now: the claim's own verdict, in words, and what would release it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from shlex import quote

from ..scripts.states import DeadReason, State
from .holds import words_of
from .instance_view import InstanceFlag, InstanceState
from .instants import rfc3339
from .jobs import Attempt, JobView
from .ledger import Ledger
from .rates import rate_in_words
from .workers import WorkerView, unserved

CLAIMABLE = "claimable"


@dataclass(frozen=True, slots=True)
class Check:
    """One question of the claim: `state` is ok, no, or not_reached when an earlier one said no."""

    name: str
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class Why:
    """`verdict` is one of a closed list: `claimable`, `pool_unserved`, or what the scripts' `blocker` says. `since` and
    `next` are epoch ms: since when it holds, and when it ends by itself; `do` are commands that would change it.
    """

    subject: str
    verdict: str
    since: int | None
    by: str | None
    text: str
    checks: tuple[Check, ...]
    next: int | None
    do: tuple[str, ...]


def why_now(ledger: Ledger, job_id: str) -> Why:
    """What stands between a job and its start. Raises NotFound."""
    return why_seen(ledger, ledger.get(job_id))


def why_seen(ledger: Ledger, job: JobView) -> Why:
    """The same of a job that has been looked up."""
    return why(job, ledger.index.workers() if waits_for_workers(job) else ())


def waits_for_workers(job: JobView) -> bool:
    """Whether nothing in the ledger keeps a job from a worker, so that it depends on which there are."""
    return job.blocker in (None, "task_unknown")


def why(job: JobView, workers: Iterable[WorkerView] | None = None) -> Why:
    """What stands between a job and its start, as it stood when it was read; whether any of the `workers` serves its
    pool, if they are known.
    """
    verdict = job.blocker or CLAIMABLE
    if waits_for_workers(job) and workers is not None and unserved([job.pool], workers):
        verdict = "pool_unserved"
    since, by, text, following, do = _SAID.get(verdict, _unknown)(job)
    commands = tuple(_command(job, command) for command in do)
    return Why(f"job {job.id}", verdict, since, by, text, _checks(job, verdict), following, commands)


def _command(job: JobView, command: str) -> str:
    of = tenant_option(job.tenant)
    if command.startswith("instances"):
        return f"tenure {command}{of} {as_argument(job.instance or '')}"
    if command.startswith(("hold ", "worker ")):
        return f"tenure {command}"
    return f"tenure jobs {command.replace('ID', job.id, 1)}{of}"


def tenant_option(tenant: str) -> str:
    """What a command needs to act on a tenant, with a space before it; nothing for the one it acts on by itself."""
    return "" if tenant == "default" else f" --tenant {tenant}"


def as_argument(text: str) -> str:
    """Text of a user as one argument of a command line."""
    return f"-- {quote(text)}" if text.startswith("-") else quote(text)


# What is said of a verdict: since when, by whom, in words, until when, and what to do: `tenure jobs` with its ID, or
# `tenure instances` of its instance, or `tenure hold`, or `tenure worker`.
Said = tuple[int | None, str | None, str, int | None, tuple[str, ...]]


def _claimable(job: JobView) -> Said:
    text = (
        f"It is due since {rfc3339(job.run_at)} and nothing stands in its way: it waits for a free slot of pool "
        f"{job.pool} on a worker that knows {job.task}."
    )
    return job.run_at, None, text, None, ("reschedule ID --priority 0", "cancel ID")


def _not_due(job: JobView) -> Said:
    last = job.attempts[-1] if job.attempts else None
    if last is not None and last.ended_at is None:
        text = f"Its next chunk is due at {rfc3339(job.run_at)}."
    elif last is not None and last.status == "failed":
        text = (
            f"Attempt {last.number} failed ({job.failures} of {job.max_attempts} this round, {job.losses} lost): "
            f"{_error(last)}. The next one is due at {rfc3339(job.run_at)}."
        )
    else:
        text = f"It is due at {rfc3339(job.run_at)}."
    since = job.created_at if last is None else last.ended_at or last.started_at
    return since, None, text, job.run_at, ("reschedule ID --now", "cancel ID")


def _expired(job: JobView) -> Said:
    assert job.start_by is not None
    text = f"Nobody started it by {rfc3339(job.start_by)}: it is dead as soon as a worker or the reaper comes by."
    return job.start_by, None, text, None, ("cancel ID",)


def _held(job: JobView) -> Said:
    until, since, words = job.facts
    by, reason = words_of(words)
    what, option = {
        "held_tenant": (f"tenant {job.tenant}", " --all"),
        "held_pool": (f"pool {job.pool}", f" --pool {job.pool}"),
        "held_task": (f"task {job.task}", f" --task {job.task}"),
    }[str(job.blocker)]
    ends = int(until) or None
    text = (
        f"The jobs of {what} are held{f' by {by}' if by else ''} since {rfc3339(int(since))}"
        f"{f': {reason}' if reason else ''}. "
        + ("They are until somebody releases them." if ends is None else f"They are until {rfc3339(ends)}.")
    )
    remove = f"hold remove{option}{tenant_option(job.tenant)}"
    return int(since), by or None, text, ends, (remove, "cancel ID")


def _rate_limited(job: JobView) -> Said:
    many, period, opens, of_key = job.facts
    what = f"concurrency key {job.concurrency_key!r}" if of_key else f"task {job.task}"
    limit = rate_in_words(int(many), int(period))
    text = f"Of {what} start at most {limit}, and so many have: the next may at {rfc3339(int(opens))}."
    return job.run_at, None, text, int(opens), ("cancel ID",)


def _pool_unserved(job: JobView) -> Said:
    text = (
        f"It is due since {rfc3339(job.run_at)} and nothing else stands in its way, but no live worker serves pool "
        f"{job.pool}: nobody claims it until one is started."
    )
    return job.run_at, None, text, None, (f"worker --pool {job.pool}", "cancel ID")


def _task_unknown(job: JobView) -> Said:
    (reported,) = job.facts
    text = (
        f"It is due since {rfc3339(job.run_at)}, and no worker that knows {job.task} has come by since "
        f"{rfc3339(int(reported))}: those that did do not have it registered. Is their code older than the caller's, "
        "or was an alias forgotten?"
    )
    return int(reported), None, text, None, ("cancel ID",)


def _key_full(job: JobView) -> Said:
    limit, *facts = job.facts
    holders = list(zip(facts[::4], facts[1::4], map(int, facts[2::4]), facts[3::4], strict=True))
    told = [
        f"job {id_} on {worker or 'a worker nobody knows'} since {rfc3339(at)}"
        f"{' (taken from it, and it has not said that it has stopped)' if lingers else ''}"
        for id_, worker, at, lingers in holders
    ]
    text = f"{_key(job)} is held by {', '.join(told)}; at most {limit} may hold it at a time."
    cancel = [f"cancel {id_}" for id_, _, _, lingers in holders if not lingers]
    return max(at for _, _, at, _ in holders), None, text, None, (*cancel[:1], "cancel ID")


def _behind_others_of_key(job: JobView) -> Said:
    limit, before = job.facts
    text = (
        f"{_key(job)} is free, at most {limit} may hold it at a time, and others go first: {before} stand "
        "before it."
    )
    return job.run_at, None, text, None, ("reschedule ID --priority 0", "cancel ID")


def _key(job: JobView) -> str:
    if job.exclusive:
        return f"It runs alone in instance {job.instance!r}, which"
    return f"Its concurrency key {job.concurrency_key!r}"


def _running(job: JobView) -> Said:
    since = job.attempts[-1].started_at if job.attempts else job.started_at
    text = f"It runs on {job.worker}, attempt {job.attempts[-1].number if job.attempts else 1}."
    if job.lease_until is not None and job.lease_until <= job.read_at:
        text += (
            f" Its lease ended at {rfc3339(job.lease_until)} and was not renewed: the reaper takes it back."
        )
    return since, job.worker, text, job.lease_until, ("watch ID", "cancel ID")


def _waiting(_job: JobView) -> Said:
    return None, None, "It waits for the jobs before it.", None, ("skip ID",)


def _paused(job: JobView) -> Said:
    since, by, text = suspension(f"its instance {job.instance}", job.flag)
    if since is None:
        return None, by, f"It is paused and goes on in a moment: {text}.", None, ("skip ID",)
    left = f"Then it is due after {_seconds(job.remaining_ms or 0)}.{_latest_start(job)}"
    text = f"It is paused until its instance is resumed: {text}. {left}"
    return since, by, text, None, ("instances resume", "skip ID")


def _instance_suspended(job: JobView) -> Said:
    since, by, text = suspension(f"its instance {job.instance}", job.flag)
    text = f"It is paused as soon as the walk over the instance's jobs, or a claim, comes by: {text}."
    text += _latest_start(job)
    return since, by, text, None, ("instances resume", "skip ID")


def _instance_ended(job: JobView) -> Said:
    since, by, text = suspension(f"its instance {job.instance}", job.flag)
    text = f"It is canceled as soon as the walk over the instance's jobs, or a claim, comes by: {text}."
    return since, by, text, None, ("cancel ID",)


def _latest_start(job: JobView) -> str:
    """What becomes of a latest start during a pause: it stands, and counts from the resume on."""
    if job.start_by is None or job.attempts:
        return ""
    due = job.read_at + (job.remaining_ms or 0)
    if job.start_by <= due:
        return (
            f" Its latest start is {rfc3339(job.start_by)}, which a pause does not move: resumed now it would not "
            "start in time and be dead (expired)."
        )
    return (
        f" Its latest start is {rfc3339(job.start_by)}, which a pause does not move: it does not expire while it is "
        "paused, but resumed too late it is dead (expired)."
    )


def suspension(whose: str, flag: InstanceFlag | None) -> tuple[int | None, str | None, str]:
    """Since when, by whom, and in words that `whose` instance is what its flag says."""
    if flag is None or flag.since is None:
        return None, None, f"{whose} has been resumed"
    verb = "has ended" if flag.state is InstanceState.ENDED else "is suspended"
    who = f" by {flag.by}" if flag.by else ""
    reason = f" ({flag.reason})" if flag.reason else ""
    return flag.since, flag.by, f"{whose} {verb} since {rfc3339(flag.since)}{who}{reason}"


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}".rstrip("0").rstrip(".") + " s"


def _succeeded(job: JobView) -> Said:
    return job.finished_at, None, "It has succeeded.", None, ()


def _stopped(job: JobView) -> Said:
    error = f" Its last error: {_error(job.error)}." if job.error else ""
    text = f"It is {job.status} ({job.dead_reason}) and is not tried again by itself.{error}"
    if job.dead_reason == DeadReason.OUTCOME_UNKNOWN:
        said, do = _OUTCOMES[job.confirmed]
        if _has_ended(job.flag):
            do = tuple(command for command in do if command != "retry ID")
        return job.finished_at, None, f"{text} {said}", None, do
    if _has_ended(job.flag):
        return job.finished_at, None, f"{text} {_NO_RETRY}", None, ("skip ID",)
    return job.finished_at, None, text, None, ("retry ID", "skip ID")


# Of a job whose last call outside nobody knows the outcome of: what a person has confirmed, and what to do.
_OUTCOMES: dict[bool | None, tuple[str, tuple[str, ...]]] = {
    None: (
        "Whether its last call outside has happened is not known: find out before it is sent again.",
        ("confirm ID --happened", "confirm ID --not-happened", "skip ID"),
    ),
    True: ("Its last call outside has happened, as was confirmed: it is not sent again.", ("skip ID",)),
    False: ("Its last call outside has not happened, as was confirmed.", ("retry ID", "skip ID")),
}


def _canceled(job: JobView) -> Said:
    by = job.history[-1].by if job.history else None  # whoever did it last did this
    text = f"It was canceled{f' by {by}' if by else ''}{f': {job.reason}' if job.reason else ''}."
    if _has_ended(job.flag):
        return job.finished_at, by, f"{text} {_NO_RETRY}", None, ()
    return job.finished_at, by, text, None, ("retry ID",)


_NO_RETRY = "It cannot be retried: its instance has ended."


def _has_ended(flag: InstanceFlag | None) -> bool:
    return flag is not None and flag.state is InstanceState.ENDED


def _unknown(job: JobView) -> Said:
    return None, None, f"It may not be claimed now: {job.blocker}.", None, ()


_SAID: dict[str, Callable[[JobView], Said]] = {
    CLAIMABLE: _claimable,
    "not_due": _not_due,
    "expired": _expired,
    "instance_suspended": _instance_suspended,
    "instance_ended": _instance_ended,
    "held_tenant": _held,
    "held_pool": _held,
    "held_task": _held,
    "rate_limited": _rate_limited,
    "pool_unserved": _pool_unserved,
    "task_unknown": _task_unknown,
    "key_full": _key_full,
    "behind_others_of_key": _behind_others_of_key,
    "state_waiting": _waiting,
    "state_running": _running,
    "state_paused": _paused,
    "state_succeeded": _succeeded,
    "state_failed": _stopped,
    "state_dead": _stopped,
    "state_canceled": _canceled,
}
VERDICTS = tuple(_SAID)

_HOLDS = ("held_tenant", "held_pool", "held_task")

# In the order in which the claim asks: the check, the verdicts that are its no, and its question.
_CHECKS: tuple[tuple[str, tuple[str, ...], Callable[[JobView], str]], ...] = (
    ("state", tuple(f"state_{state}" for state in State), lambda job: f"it is {job.status}"),
    ("instance", ("instance_suspended", "instance_ended"), lambda job: f"instance: {job.instance or 'none'}"),
    (
        "start_by",
        ("expired",),
        lambda job: f"latest start: {rfc3339(job.start_by) if job.start_by else 'any'}",
    ),
    (
        "hold",
        _HOLDS,
        lambda job: f"held: its {str(job.blocker)[5:]}" if job.blocker in _HOLDS else "held: nothing of it",
    ),
    ("due", ("not_due",), lambda job: f"due at {rfc3339(job.run_at)}"),
    (
        "rate",
        ("rate_limited",),
        lambda job: (
            f"the next may start at {rfc3339(int(job.facts[2]))}"
            if job.blocker == "rate_limited"
            else "no rate limit is reached"
        ),
    ),
    (
        "key",
        ("key_full", "behind_others_of_key"),
        lambda job: f"concurrency key: {job.instance if job.exclusive else job.concurrency_key or 'none'}",
    ),
    ("served", ("pool_unserved",), lambda job: f"live workers of pool {job.pool}"),
    ("known", ("task_unknown",), lambda job: f"workers that know {job.task}"),
)


def _checks(job: JobView, verdict: str) -> tuple[Check, ...]:
    found: list[Check] = []
    said_no = False
    for name, noes, text in _CHECKS:
        state = "not_reached" if said_no else "no" if verdict in noes else "ok"
        said_no = said_no or state == "no"
        found.append(Check(name, state, text(job)))
    if verdict not in _SAID:
        found.append(Check(verdict, "no", verdict))
    return tuple(found)


def _error(attempt: Attempt) -> str:
    first, _, rest = (attempt.error or attempt.cause or "no error on record").partition("\n")
    return f"{first[:200]}{'…' if rest or len(first) > 200 else ''}"
