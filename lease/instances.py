"""The instances of one tenant: the user's own workflow instances, to which jobs may belong."""

from __future__ import annotations

from typing import Any

from ..scripts import Call
from ..scripts.loader import Arg
from ..scripts.states import State
from . import views
from .context import check_text
from .instance_view import InstanceState, InstanceView
from .jobs import REAP, News
from .ledger import Ledger
from .walk import STEP, go_on
from .who import check_word
from .why import Why, why_now
from .why_instance import why_instance

MOST_JOBS = 500
_check_name = check_text("instance")
_check_node = check_text("node")


class Instances:
    """Verbs of instances. What an instance is already changes nothing and is no error."""

    def __init__(self, ledger: Ledger, step: int = STEP) -> None:
        self._ledger = ledger
        self._step = step

    def pause(self, instance: str, reason: str = "", by: str = "") -> InstanceView:
        """Suspend it: jobs of its pausable tasks pause with the time they have left, a running one with none, and new
        ones are made paused. Raises InstanceEnded.
        """
        return self._say(instance, InstanceState.SUSPENDED, reason, by)

    def resume(self, instance: str, reason: str = "", by: str = "") -> InstanceView:
        """Let it go on: its paused jobs are due when the time they had left is over. Raises InstanceEnded."""
        return self._say(instance, "", reason, by)

    def end(self, instance: str, reason: str = "", by: str = "") -> InstanceView:
        """End it for good: unfinished jobs of its tasks that are cleared on end are canceled, now and if they are made
        later; others go on, those that were paused too.
        """
        return self._say(instance, InstanceState.ENDED, reason, by)

    def get(self, instance: str, node: str | None = None) -> InstanceView:
        """How it stands, or one node of it does. One of which nothing was said, and that has no jobs, is normal too."""
        _check_name(instance)
        if node is not None:
            _check_node(node)
        args: dict[str, Arg] = {"instance": instance, "node": node or "", "most": MOST_JOBS}
        return self._ledger.scripts.run(
            Call(
                "instance_read", self._ledger.keys.home, args, lambda reply: self._view(instance, node, reply)
            )
        )

    def why(self, instance: str, node: str | None = None) -> Why:
        """Why it does not go on; of a node, why its newest unfinished job does not."""
        view = self.get(instance, node)
        if node is not None and view.job is not None:
            return why_now(self._ledger, view.job)
        return why_instance(view)

    def _say(self, instance: str, flag: str, reason: str, by: str) -> InstanceView:
        epoch = self.begin(instance, flag, reason, by)
        if epoch:
            go_on(self._ledger, instance, epoch, step=self._step)
        return self.get(instance)

    def begin(self, instance: str, flag: str, reason: str = "", by: str = "") -> str:
        """Set the flag (empty: normal), which is in force then, and bring the first jobs after it. Answers the epoch
        under which the walk over the others is to be gone on with; empty when there are none.
        """
        _check_name(instance)
        check_word(by, reason)
        ledger = self._ledger
        args: dict[str, Arg] = {
            "instance": instance,
            "flag": flag,
            "by": by,
            "reason": reason,
            "most": self._step,
        }
        call: Call[Any] = Call("instance_flag", ledger.keys.home, args, tuple)
        _changed, epoch, news, reap = ledger.scripts.run(call)
        visit = [News(ledger.tenant, REAP, *map(int, reap))] if reap else []
        ledger.index.put([*visit, *views.news(ledger.tenant, news)])
        return str(epoch.decode())

    def _view(self, instance: str, node: str | None, reply: Any) -> InstanceView:
        read_at, flat, jobs, states, job = reply
        found = {State(state.decode()): (int(number), int(due)) for state, number, due in states}
        pending = found.get(State.PENDING)
        return InstanceView(
            tenant=self._ledger.tenant,
            id=instance,
            node=node,
            flag=views.flag(flat),
            jobs=int(jobs),
            states={state: found[state][0] for state in State if state in found},
            next_due=pending[1] if pending else None,
            job=job.decode() or None,
            read_at=int(read_at),
        )
