"""What redis-py raises, as one of our store errors: which server, what happened, what to do next."""

from __future__ import annotations

import re

from redis import exceptions as redis

from .errors import (
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreTooOld,
    StoreUnreachable,
)

# redis-py drops the code of a reply it has a class for and keeps all others: so both are looked up.
_CODES: dict[type[Exception], str] = {
    redis.AuthenticationError: "WRONGPASS",
    redis.AuthorizationError: "NOPERM",
    redis.NoPermissionError: "NOPERM",
    redis.ReadOnlyError: "READONLY",
    redis.OutOfMemoryError: "OOM",
    redis.BusyLoadingError: "LOADING",
    redis.MasterDownError: "MASTERDOWN",
    redis.ClusterDownError: "CLUSTERDOWN",
    redis.TryAgainError: "TRYAGAIN",
    redis.MaxConnectionsError: "MAXCONNECTIONS",
    redis.TimeoutError: "TIMEOUT",
    redis.ConnectionError: "CONNECTION",
    redis.RedisClusterException: "CLUSTERDOWN",
    TimeoutError: "TIMEOUT",
    OSError: "CONNECTION",
}

_RIGHTS = "give its user the rights (~* &* +@all is the simplest set)"
_WAIT = "it usually passes by itself: try again in a moment"
_PASSWORD = "put the right user and password in TENURE_REDIS_URL (redis://user:password@host:port)"
_REACH = "look whether it runs and whether TENURE_REDIS_URL names it (try: redis-cli -u URL ping)"

_SAYS: dict[str, tuple[type[StoreError], str, str]] = {
    "NOAUTH": (StoreRefused, "asks for a password", _PASSWORD),
    "WRONGPASS": (StoreRefused, "refused the credentials", _PASSWORD),
    "DENIED": (
        StoreRefused,
        "is in protected mode",
        "set a password on it, then put that in TENURE_REDIS_URL",
    ),
    "NOPERM": (StoreRefused, "forbids this user a command or key", _RIGHTS),
    "READONLY": (StoreReadOnly, "is a replica and takes no writes", "point TENURE_REDIS_URL at the primary"),
    "NOREPLICAS": (
        StoreReadOnly,
        "takes no writes: too few replicas follow it",
        "bring a replica back, or lower min-replicas-to-write",
    ),
    "OOM": (StoreFull, "is full: maxmemory is reached", "raise maxmemory, or let old results expire"),
    "MISCONF": (StoreFull, "cannot write to its disk and takes no writes", "free space there, see its log"),
    "LOADING": (StoreUnreachable, "is still loading its data", _WAIT),
    "MASTERDOWN": (StoreUnreachable, "is a replica that lost its primary", _WAIT),
    "CLUSTERDOWN": (StoreUnreachable, "is a cluster that cannot serve this slot now", _WAIT),
    "TRYAGAIN": (StoreUnreachable, "is moving this slot", _WAIT),
    "BUSY": (
        StoreUnreachable,
        "is busy with a script that does not end",
        "SCRIPT KILL or FUNCTION KILL ends it",
    ),
    "MAXCONNECTIONS": (StoreUnreachable, "has lent all connections of this process", "use fewer threads"),
    "TIMEOUT": (
        StoreUnreachable,
        "did not answer in time",
        "look at its load (redis-cli --latency) and the network",
    ),
    "CONNECTION": (StoreUnreachable, "cannot be reached", _REACH),
}

_TEXTS: tuple[tuple[str, type[StoreError], str, str], ...] = (
    (r"^Authentication required", StoreRefused, "asks for a password", _PASSWORD),
    (r"unknown command", StoreTooOld, "does not know a command", "use Redis or Valkey 7.0 or newer"),
    (
        r"DB index is out of range",
        StoreRefused,
        "has no such database",
        "use a lower number: redis://host:port/0",
    ),
    (
        r"SSL|certificate",
        StoreUnreachable,
        "does not agree on TLS",
        "rediss:// needs a server with TLS and a certificate this machine trusts, redis:// one without",
    ),
)


def store_error(exc: Exception, address: str) -> StoreError:
    """The error to raise instead of `exc`, which came from the server at `address`."""
    if isinstance(exc, StoreError):
        return exc
    text = str(exc) or type(exc).__name__
    kind, what, hint = _find(exc, text)
    if kind is StoreUnreachable and address.startswith("rediss:"):
        hint += "; rediss:// needs a server that speaks TLS"
    return kind(f"{safe_url(address)} {what}: {safe_url(text)}", hint=hint)


def safe_url(url: str) -> str:
    """The URL as it may be shown: without user and password."""
    hidden = re.sub(r"//.*@", "//***@", url)
    return re.sub(r"([?&](?:ssl_)?(?:username|password)=)[^&#]*", r"\1***", hidden)


def _find(exc: Exception, text: str) -> tuple[type[StoreError], str, str]:
    for pattern, kind, what, hint in _TEXTS:
        if re.search(pattern, text):
            return kind, what, hint
    said = _SAYS.get(text.split(" ", 1)[0])
    if said:
        return said
    for known in type(exc).__mro__:
        if known in _CODES:
            return _SAYS[_CODES[known]]
    return StoreError, "refused a call", "see the server's log; `tenure status` shows what it says of itself"
