"""Goes on with the walk that brings the jobs of an instance after its flag: who began it does, else any reaper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..scripts import Call
from ..scripts.loader import Arg
from . import views

if TYPE_CHECKING:
    from .ledger import Ledger

STEP = 25
"""How many jobs a step looks at. When all of them run, that is 2 ms of the server's time."""
STEPS = 200
"""How many steps a reaper takes in one visit to a tenant: others wait for it too."""


def go_on(
    ledger: Ledger, instance: str, epoch: str = "", *, steps: int | None = None, step: int = STEP
) -> bool:
    """Take steps until the walk is over, or has been begun anew under another epoch. Answers whether it goes on."""
    args: dict[str, Arg] = {"instance": instance, "epoch": epoch, "most": step}
    call: Call[tuple[bytes, list[list[bytes]]]] = Call("instance_walk", ledger.keys.home, args, tuple)
    taken = 0
    while steps is None or taken < steps:
        goes_on, news = ledger.scripts.run(call)
        ledger.index.put(views.news(ledger.tenant, news))
        if goes_on != b"1":
            return False
        taken += 1
    return True
