"""Ids in ULID form: 26 characters of Crockford's base 32, 48 bits of milliseconds before 80 bits of chance or
digest.
"""

from __future__ import annotations

import os
import re
import time
from hashlib import blake2b

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_SHAPE = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]


_last = 0


def new_id() -> str:
    """A fresh id; its time part is this machine's clock and only a label.

    It is greater than those this process made before, so jobs of one priority and instant keep their order. A
    clock that stands or was put back is passed by a step of 64 random bits: no two threads or forks meet.
    """
    global _last
    chance = int.from_bytes(os.urandom(10), "big")
    _last = max(_number(time.time_ns() // 1_000_000, chance), _last + (chance >> 16))
    return _encode(_last)


def fire_id(tenant: str, job_key: str, trigger: str, instant_ms: int) -> str:
    """The id of the job of one planned instant: the same for every scheduler that computes it."""
    text = "\0".join((tenant, job_key, trigger, str(instant_ms)))
    return _encode(
        _number(instant_ms, int.from_bytes(blake2b(text.encode(), digest_size=10).digest(), "big"))
    )


def is_id(text: str) -> bool:
    return bool(_SHAPE.fullmatch(text))


def _number(ms: int, chance: int) -> int:
    return (ms & (1 << 48) - 1) << 80 | chance


def _encode(number: int) -> str:
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])
