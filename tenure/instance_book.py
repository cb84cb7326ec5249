"""`app.instances`: workflow instances of the user's own, over all tenants, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lease.instance_view import InstanceView
from .lease.instances import Instances
from .lease.who import who
from .lease.why import Why
from .scripts.kinds import checked

if TYPE_CHECKING:
    from .app import Tenure


@checked
class InstanceBook:
    """What changes an instance takes `by`, who does it (this process's user and host if it is left out)."""

    def __init__(self, app: Tenure) -> None:
        self._app = app

    def pause(
        self, instance: str, reason: str = "", tenant: str = "default", *, by: str | None = None
    ) -> InstanceView:
        """Suspend an instance: jobs of its pausable tasks pause. Raises InstanceEnded."""
        return self._of(tenant).pause(instance, reason, who(by))

    def resume(
        self, instance: str, reason: str = "", tenant: str = "default", *, by: str | None = None
    ) -> InstanceView:
        """Let a suspended instance go on. Raises InstanceEnded."""
        return self._of(tenant).resume(instance, reason, who(by))

    def end(
        self, instance: str, reason: str = "", tenant: str = "default", *, by: str | None = None
    ) -> InstanceView:
        """End an instance for good: jobs of its tasks that are cleared on end are canceled."""
        return self._of(tenant).end(instance, reason, who(by))

    def get(self, instance: str, tenant: str = "default") -> InstanceView:
        """How an instance stands; one that nobody has spoken of is normal."""
        return self._of(tenant).get(instance)

    def why(self, instance: str, node: str | None = None, tenant: str = "default") -> Why:
        """Why an instance does not go on; of a node of it, why its newest unfinished job does not."""
        return self._of(tenant).why(instance, node)

    def _of(self, tenant: str) -> Instances:
        return Instances(self._app.ledger(tenant))
