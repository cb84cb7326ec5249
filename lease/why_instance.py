"""Why an instance does not go on: its flag, and what its jobs wait for, in words."""

from __future__ import annotations

from .instance_view import InstanceState, InstanceView
from .instants import rfc3339
from .why import Check, Why, as_argument, suspension, tenant_option

_DO = {
    InstanceState.NORMAL: (),
    InstanceState.SUSPENDED: ("resume", "end"),
    InstanceState.ENDED: (),
}
_WALKED = {
    InstanceState.NORMAL: "none of its jobs is held back by it",
    InstanceState.SUSPENDED: "those of pausable tasks are paused, others go on",
    InstanceState.ENDED: "those of tasks that are cleared on end are canceled, others go on",
}
"""What the walk over an instance's jobs has brought about when it is over."""
VERDICTS = tuple(f"instance_{state}" for state in InstanceState)


def why_instance(view: InstanceView) -> Why:
    """How an instance stood when it was read, and what would change that. Its jobs are counted: `why` of one of them
    tells more.
    """
    flag = view.flag
    since, by, text = suspension("It", flag if flag.since is not None else None)
    if since is None:
        text = "It is neither suspended nor ended"
    normal = flag.state is InstanceState.NORMAL
    checks = (
        Check("flag", "ok" if normal else "no", f"it is {flag.state}"),
        Check("walk", "no" if flag.walking else "ok", _walk(view)),
        Check("jobs", "ok", _jobs(view)),
    )
    of = tenant_option(view.tenant)
    commands = tuple(f"tenure instances {verb}{of} {as_argument(view.id)}" for verb in _DO[flag.state])
    follow = f"; {_walk(view)}" if view.states and (flag.walking or since is not None) else ""
    said = f"{text}{follow}; {_jobs(view)}."
    following = view.next_due if view.next_due is not None and view.next_due > view.read_at else None
    return Why(f"instance {view.id}", f"instance_{flag.state}", since, by, said, checks, following, commands)


def _walk(view: InstanceView) -> str:
    if view.flag.walking:
        return "its jobs are being brought after it"
    if not view.states:
        return "there are no jobs to be brought after it"
    return _WALKED[view.flag.state]


def _jobs(view: InstanceView) -> str:
    if not view.states:
        return f"it has no jobs of node {view.node}" if view.node else "it has no jobs"
    counted = sum(view.states.values())
    of = f"of its {view.jobs} jobs the newest {counted} are" if counted < view.jobs else "its jobs are"
    told = ", ".join(f"{number} {state}" for state, number in view.states.items())
    due = view.next_due
    when = (
        "" if due is None else f"; the first is due {'since' if due <= view.read_at else 'at'} {rfc3339(due)}"
    )
    return f"{of}: {told}{when}"
