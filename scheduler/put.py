"""The answer to a put."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Put:
    """`changed` is False if the same was stored already, `created` True if nothing was."""

    revision: int
    changed: bool
    created: bool = False
