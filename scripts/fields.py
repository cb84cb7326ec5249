"""The fields of a job's row: long names for code, short ones for storage. Defaults are left out of the row.

A hash stays in Redis's compact form only while no value passes 64 bytes, so a long value (`BLOBS`) is cut into pieces,
`a+1` to `a+8` of `a`, and a very long one moves to a key of its own; the field itself is then empty. Besides these, a
row has for each attempt N the fields `aN` (packed: generation, status, cause, fence, start, length in ms, chunks) and
`wN` (the worker's name).
"""

from __future__ import annotations

from collections.abc import Iterable

FIELDS: dict[str, str] = {
    "task": "t",
    "state": "s",
    "pool": "q",
    "priority": "p",
    "created": "c",
    "run_at": "r",
    "generation": "g",
    "revision": "v",
    "fence": "f",
    "deadline": "x",
    "attempts": "n",
    "failures": "k",
    "losses": "z",
    "chunk": "h",
    "timeout": "T",
    "max_attempts": "m",
    "max_lost": "M",
    "args": "a",
    "result": "o",
    "cursor": "u",
    "message": "e",
    "unique": "y",
    "unique_key": "Y",
    "unique_mode": "i",
    "digest": "d",
    "dead_reason": "R",
    "fingerprint": "fp",
    "confirmed": "cf",
    "reason": "b",
    "started": "S",
    "finished": "F",
    "source": "o1",
    "trace": "tr",
    "fire": "fi",
    "fire_time": "ft",
    "background": "B",
    "record": "rc",
    "edit": "E",
    "end_as": "ef",
    "start_by": "sb",
    "asked": "Q",
    "instance": "in",
    "node": "nd",
    "node_name": "nn",
    "definition": "df",
    "definition_version": "dv",
    "execution": "ex",
    "work_item": "wi",
    "repeat_rule": "rr",
    "labels": "lb",
    "parent": "pa",
    "root": "rt",
    "pausable": "pz",
    "cleared_on_end": "ce",
    "remaining": "rm",
    "concurrency_key": "ck",
    "concurrency_limit": "cl",
    "exclusive": "xc",
    "own_line": "ln",
    "key_rate": "kr",
    "log_month": "lm",
    "unit": "un",
    "binding": "bi",
    "lineage": "lg",
    "spent": "sp",
    "charged": "ch",
}

DEFAULTS: dict[str, str] = {
    "state": "pending",
    "pool": "advance",
    "priority": "5",
    "generation": "1",
    "revision": "1",
    "attempts": "0",
    "failures": "0",
    "losses": "0",
    "chunk": "0",
    "timeout": "600000",
    "max_attempts": "3",
    "max_lost": "3",
    "edit": "0",
    "source": "api",
    "concurrency_limit": "1",
}

BLOBS = (
    "args",
    "result",
    "cursor",
    "unique_key",
    "reason",
    "fire",
    "trace",
    "instance",
    "node",
    "node_name",
    "definition",
    "definition_version",
    "execution",
    "work_item",
    "repeat_rule",
    "record",
    "labels",
    "concurrency_key",
    "lineage",
)
BLOB_LIMIT = 64
PIECES = 8
"""A value of up to so many times the limit stands in the row, cut into pieces."""


def piece(name: str, nth: int) -> str:
    """The field of the `nth` piece of a long value, from 1 on."""
    return f"{FIELDS[name]}+{nth}"


def lua_fields() -> str:
    """The tables above as Lua constructors, for the scripts' prelude."""
    short = ", ".join(f"{name} = '{field}'" for name, field in FIELDS.items())
    long = ", ".join(f"['{field}'] = '{name}'" for name, field in FIELDS.items())
    defaults = ", ".join(f"{name} = '{value}'" for name, value in DEFAULTS.items())
    blobs = _texts(BLOBS)
    pieces = {name: [piece(name, nth) for nth in range(1, PIECES + 1)] for name in BLOBS}
    of_each = ", ".join(f"{name} = {{{_texts(fields)}}}" for name, fields in pieces.items())
    all_pieces = ", ".join(f"['{field}'] = true" for fields in pieces.values() for field in fields)
    return "\n".join(
        [
            f"local SHORT = {{{short}}}",
            f"local LONG = {{{long}}}",
            f"local DEFAULTS = {{{defaults}}}",
            f"local BLOBS = {{{blobs}}}",
            f"local IS_BLOB = {{{', '.join(f'{name} = true' for name in BLOBS)}}}",
            f"local BLOB_LIMIT = {BLOB_LIMIT}",
            f"local PIECES = {PIECES}",
            f"local PIECE = {{{of_each}}}",
            f"local IS_PIECE = {{{all_pieces}}}",
        ]
    )


def _texts(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)
