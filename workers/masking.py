"""An error's message without what differs from one time to the next: numbers, ids and quoted text become marks.

One pass of one pattern over a bounded text: no run of characters is looked at again once it is taken (`++`), so the
time is linear in the length whatever the message is.
"""

from __future__ import annotations

import re

LOOK = 2_000
"""So many characters of a message are looked at."""
LIMIT = 200
"""So long is the template at most."""

NUMBER, ID, QUOTED = "#", "<id>", "'…'"

_VARYING = re.compile(
    r"""
    (?<!\w)(?:                              # quoted text, also one that is cut off by the end
        '[^']*+(?:'(?!\w)|\Z)
      | "[^"]*+(?:"(?!\w)|\Z)
      | `[^`]*+(?:`(?!\w)|\Z)
    )
  | [“«„][^”»“]*+(?:[”»“]|\Z)
  | (?P<id>
        \b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b    # UUID
      | \b[0-7][0-9A-HJKMNP-TV-Z]{25}\b                             # ULID
      | \b0[xX][0-9a-fA-F]++\b
      | \b(?=[a-fA-F]*+\d)[0-9a-fA-F]{8,}+\b(?<!\d\d\d\d\d\d\d\d)   # hex with a letter among its last eight
      | \b(?=[A-Za-z_]*+\d)(?=\d*+[A-Za-z_])\w{16,}+\b              # any long mixture of letters and digits
    )
  | (?P<number>(?:(?<![\w.])-)?\d++(?:[.,:]\d++)*+(?:[eE][+-]?\d++)?)
    """,
    re.VERBOSE | re.DOTALL,
)
_LIST = re.compile(rf"({NUMBER}|{ID}|{QUOTED})(?:,\ ?\1)++")
_ODD = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]++")


def template(message: str) -> str:
    """What is left of `message`, on one line of at most `LIMIT` characters. Equal for messages that differ only in
    numbers, ids and quoted text, and in how many of them stand in a row.
    """
    masked = _VARYING.sub(_mark, message[:LOOK])
    flat = _ODD.sub(" ", _LIST.sub(r"\1", masked)).strip()
    return flat if len(flat) <= LIMIT else f"{flat[: LIMIT - 1]}…"


def _mark(found: re.Match[str]) -> str:
    return ID if found["id"] else NUMBER if found["number"] else QUOTED
