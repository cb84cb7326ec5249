"""What a server says about itself at the start, and every reason not to trust it with jobs."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from redis import Redis
from redis.exceptions import NoPermissionError, RedisError, ResponseError

from .embedded import EmbeddedServer
from .scripts.errors import (
    DurabilityUnavailable,
    StoreEvicts,
    StoreReadOnly,
    StoreTooOld,
    StoreUnreachable,
)
from .scripts.store_errors import safe_url, store_error
from .settings import DURABILITIES, Durability, Settings

LOADING_LIMIT_S = 60.0
OLDEST = (7, 0)


@dataclass(frozen=True)
class ServerFacts:
    """What a server said about itself."""

    address: str
    product: str
    version: str
    durability: Durability
    declared: bool
    """True when the server keeps its configuration to itself, so `durability` is the operator's word."""
    cluster: bool
    warnings: tuple[str, ...] = ()


def check(
    client: Redis,
    settings: Settings,
    server: EmbeddedServer | None = None,
    loading_s: float = LOADING_LIMIT_S,
) -> ServerFacts:
    """Ask one server what it is and whether it takes writes; raises the StoreError that says why not.

    One that loads its data is waited for, for `loading_s`.
    """
    address = safe_url(settings.redis_url) if settings.redis_url else f"embedded server in {settings.data}"
    try:
        info = _info_when_loaded(client, address, loading_s)
        if server is not None and settings.durability == "disk":
            # The process that started it may have asked for less.
            cast(Any, client).config_set("appendfsync", "always")
        facts = _facts(info, _appendfsync(client), settings, address, server)
        _refuse_unfit(info, facts, settings)
        if not (facts.cluster and info.get("role") == "slave"):
            _try_a_write(client)
    except (RedisError, OSError) as exc:
        raise store_error(exc, address) from exc
    return facts


def _info_when_loaded(client: Any, address: str, loading_s: float) -> Mapping[str, str]:
    began = time.monotonic()
    while True:
        reply = cast("Mapping[str, object]", client.info())
        info = {name: str(value) for name, value in reply.items()}
        if info.get("loading", "0") == "0":
            return info
        if time.monotonic() - began >= loading_s:
            raise StoreUnreachable(
                f"{address} is still loading its data", hint="it answers by itself when it has: wait"
            )
        time.sleep(0.1)


def _appendfsync(client: Any) -> str | None:
    """The policy, or None where the server keeps its configuration to itself, as hosted ones do."""
    try:
        return cast("Mapping[str, str]", client.config_get("appendfsync")).get("appendfsync")
    except ResponseError:
        return None


def _facts(
    info: Mapping[str, str],
    fsync: str | None,
    settings: Settings,
    address: str,
    server: EmbeddedServer | None,
) -> ServerFacts:
    durability: Durability = "memory"
    if info.get("aof_enabled") == "1":
        durability = "disk" if fsync == "always" else "process"
    warnings = server.warnings() if server else []
    if fsync is None and settings.durability:
        durability = settings.durability
        warnings.append(
            f"{address} hides its configuration: durability {durability!r} is your word, not seen"
        )
    if fsync == "everysec" and durability == "process":
        warnings.append(
            f"{address} has appendfsync everysec: a server killed during an fsync can lose up to 2 s of "
            "acknowledged jobs; with no it loses them only when the machine fails, with always never"
        )
    if durability == "memory":
        warnings.append(f"{address} keeps jobs in memory only: they end with the server (appendonly is off)")
    return ServerFacts(
        address=address,
        product="Valkey" if "valkey_version" in info else "Redis",
        version=info.get("valkey_version") or info.get("redis_version", "0"),
        durability=durability,
        declared=fsync is None,
        cluster=info.get("cluster_enabled") == "1",
        warnings=tuple(warnings),
    )


def _refuse_unfit(info: Mapping[str, str], facts: ServerFacts, settings: Settings) -> None:
    if _version(info) < OLDEST:
        raise StoreTooOld(
            f"{facts.address} is {facts.product} {facts.version}: Tenure needs 7.0 or newer",
            hint="use a newer server, or none: without TENURE_REDIS_URL Tenure starts its own",
        )
    if info.get("role") == "slave" and not facts.cluster:
        primary = f"{info.get('master_host')}:{info.get('master_port')}"
        raise StoreReadOnly(
            f"{facts.address} is a replica of {primary} and takes no writes",
            hint=f"point TENURE_REDIS_URL at {primary}",
        )
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise StoreEvicts(
            f"{facts.address} has maxmemory-policy {policy}: when it is full it would throw jobs away",
            hint="redis-cli CONFIG SET maxmemory-policy noeviction, and the same in its configuration file",
        )
    asked = settings.durability
    if asked and DURABILITIES.index(asked) > DURABILITIES.index(facts.durability):
        need = "appendonly yes" if asked == "process" else "appendonly yes, appendfsync always"
        raise DurabilityUnavailable(
            f"{facts.address} reaches durability {facts.durability!r}, {asked!r} was asked for",
            hint=f"set {need} on the server, or TENURE_DURABILITY={facts.durability}",
        )


def _version(info: Mapping[str, str]) -> tuple[int, ...]:
    """Valkey answers 7.2.4 here, the version of Redis it stands for."""
    return tuple(int(part) for part in re.findall(r"\d+", info.get("redis_version", "0"))[:2])


def _try_a_write(client: Any) -> None:
    """A script that might write is refused as a write would be, full disk and all; it touches no key."""
    try:
        client.eval("#!lua\nreturn 1", 0)
    except NoPermissionError:
        return  # Tenure's scripts are functions; the right to EVAL is not needed
