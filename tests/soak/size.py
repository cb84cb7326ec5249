"""How many samples a test takes that could take any number: few in the normal suite, many under `make soak`.

TENURE_SOAK=1 python -m pytest ...        as many as `make soak` takes; 0.1 is a tenth of them
TENURE_SEED=17 python -m pytest ...       of a test that is drawn from seeds, this seed alone
"""

from __future__ import annotations

import os


def samples(few: int, many: int) -> int:
    """`few`, or `many` under `make soak`."""
    share = float(os.environ.get("TENURE_SOAK", "0"))
    return max(few, round(many * share))


def seeds(few: int, many: int) -> list[int]:
    """The seeds to live through."""
    only = os.environ.get("TENURE_SEED")
    return [int(only)] if only else list(range(samples(few, many)))
