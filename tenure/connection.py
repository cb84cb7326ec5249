"""The store: clients of one server that reconnect by themselves.

Calls are re-sent after a lost connection, with jitter, for `RETRY_LIMIT_S` and at most one time-out more. This
is safe because every script that changes something shows a fence or a request token, so that a second arrival
of the same call is recognised. What is no such script (a plain INCR) must not go through these clients.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar, cast

from redis import Redis, RedisCluster
from redis.backoff import EqualJitterBackoff, NoBackoff
from redis.connection import ConnectionPool, UnixDomainSocketConnection
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    SlotNotCoveredError,
    TimeoutError,
)
from redis.retry import Retry

from .embedded import EmbeddedServer
from .facts import ServerFacts, check
from .lease.loop import Loop
from .plain_client import PlainClient
from .scripts.errors import BadInput
from .scripts.store_errors import safe_url, store_error
from .settings import Settings

__all__ = ["BoundedRetry", "Client", "ServerFacts", "Store", "check", "connect"]

T = TypeVar("T")
Client: TypeAlias = Redis | RedisCluster

CONNECT_LIMIT_S = 5.0
ANSWER_LIMIT_S = 10.0
RETRY_LIMIT_S = 10.0
WAITING_LIMIT_S = 2.0
CHECK_LIMIT_S = 1.0
CONNECTIONS = 512
PASSING = (
    ConnectionError,
    TimeoutError,
    OSError,  # redis-py 6 tries again with the socket's own error
    ReadOnlyError,
    MasterDownError,
    ClusterDownError,
    SlotNotCoveredError,
)
FINAL = (AuthenticationError, AuthorizationError)


@dataclass(frozen=True)
class Store:
    """The clients of one server. Threads may share them, and a fork may carry them over."""

    settings: Settings
    address: str
    facts: ServerFacts
    redis: Client
    blocking: Client
    """For `lease.waits`: never re-sends, and gives up soon on a server that does not answer. Who waits longer for
    something to read looks first whether it is there."""
    server: EmbeddedServer | None = None
    syncing: Loop | None = None
    """Bounds what a power failure may take from an embedded server."""

    def another(self, *, blocking: bool = False) -> Client:
        """A client with connections of its own, as for renewals, which must not queue behind other calls."""
        return _client(self.settings, self.server, cluster=self.facts.cluster, blocking=blocking)

    def for_rq(self) -> Redis:
        """A client for RQ alone, which changes the time-outs of the one it is given.

        Raises BadInput when it would be that of a Redis Cluster.
        """
        settings, server, cluster, name = self.settings, self.server, self.facts.cluster, "redis_url"
        if settings.rq_url is not None:
            settings, server, name = replace(settings, redis_url=settings.rq_url), None, "rq_url"
            cluster = _is_cluster(settings)
        if cluster:
            raise BadInput(
                f"{name} is {safe_url(settings.redis_url or '')!r}, a Redis Cluster: RQ, which lists workers and "
                "sends them commands, needs a plain server",
                hint="set TENURE_RQ_URL=redis://host:port/db; it holds no jobs, so a small one will do",
            )
        return cast(Redis, _client(settings, server, cluster=False))

    def check(self) -> ServerFacts:
        """Ask the server again; raises the StoreError that says what is wrong with it now.

        One that does not answer, or loads its data, is not waited for.
        """
        with closing(_probe(self.settings, self.server)) as probe:
            limits = {"socket_timeout": CHECK_LIMIT_S, "socket_connect_timeout": CHECK_LIMIT_S}
            probe.connection_pool.connection_kwargs.update(limits)
            return check(probe, self.settings, self.server, loading_s=0.0)

    def close(self) -> None:
        """Close the connections; the last user of an embedded server ends it."""
        if self.syncing is not None:
            self.syncing.stop(timeout=1.0)
        self.redis.close()
        self.blocking.close()
        if self.server is not None:
            self.server.close()


def connect(settings: Settings) -> Store:
    """Open the store that `settings` name, starting the embedded server if need be, and check it.

    Fails at once when nobody listens: only a store that was seen healthy is worth waiting for.
    """
    server = None
    if settings.redis_url is None and settings.data is not None:
        server = EmbeddedServer(settings.data, binary=settings.server, disk=settings.durability == "disk")
        server.ensure()
    with closing(_probe(settings, server)) as probe:
        facts = check(probe, settings, server)
    try:
        redis = _client(settings, server, cluster=facts.cluster)
        blocking = _client(settings, server, cluster=facts.cluster, blocking=True)
    except RedisClusterException as exc:
        raise store_error(exc, facts.address) from exc
    return Store(settings, facts.address, facts, redis, blocking, server, _start_syncing(server))


@dataclass(frozen=True)
class _Syncing:
    server: EmbeddedServer

    def round(self) -> float:
        return self.server.sync()


def _start_syncing(server: EmbeddedServer | None) -> Loop | None:
    if server is None:
        return None
    loop = Loop(_Syncing(server), "tenure-sync")
    loop.start()
    return loop


def _probe(settings: Settings, server: EmbeddedServer | None) -> Redis:
    """A client that answers or fails, without a second try."""
    try:
        pool = _pool(settings, server, retry=Retry(NoBackoff(), 0))
        pool.make_connection()
    except (TypeError, ValueError) as exc:
        url = safe_url(settings.redis_url or "")
        raise BadInput(f"redis_url is {url!r}: {exc}", hint="leave the option out") from exc
    return Redis.from_pool(pool)


def _is_cluster(settings: Settings) -> bool:
    with closing(_probe(settings, None)) as probe:
        try:
            return bool(cast(Any, probe).info("cluster")["cluster_enabled"])
        except (RedisError, OSError) as exc:
            raise store_error(exc, safe_url(settings.redis_url or "")) from exc


def _client(
    settings: Settings, server: EmbeddedServer | None, *, cluster: bool, blocking: bool = False
) -> Client:
    if cluster:
        return _Cluster(
            url=settings.redis_url,
            patience_s=0.0 if blocking else RETRY_LIMIT_S,
            retry=Retry(NoBackoff(), 0 if blocking else 3),
            require_full_coverage=False,
            **_options(settings) | (WAITING if blocking else {}),
        )
    if not blocking:
        return PlainClient.from_pool(_pool(settings, server, retry=BoundedRetry(RETRY_LIMIT_S)))
    pool = _pool(settings, server, retry=Retry(NoBackoff(), 0))
    pool.connection_kwargs.update(WAITING)  # also over a socket_timeout of the URL
    return Redis.from_pool(pool)


def _pool(settings: Settings, server: EmbeddedServer | None, *, retry: Retry) -> ConnectionPool:
    pools: Any = ConnectionPool
    options = {**_options(settings), "retry": retry}
    if server is None:
        return cast(ConnectionPool, pools.from_url(settings.redis_url, **options))
    return cast(ConnectionPool, pools(connection_class=_EmbeddedConnection, server=server, **options))


def _options(settings: Settings) -> dict[str, Any]:
    """How to connect; options in the URL go before these."""
    options: dict[str, Any] = {
        "protocol": 2,  # with hiredis a tenth quicker than 3, and the same replies from redis-py 6 to 8
        "socket_connect_timeout": CONNECT_LIMIT_S,
        "socket_timeout": ANSWER_LIMIT_S,
        "max_connections": CONNECTIONS,
    }
    if (settings.redis_url or "unix:").startswith("unix:"):
        return options
    return options | {"socket_keepalive": True, "socket_keepalive_options": _KEEPALIVE}


# A server that is gone must not hold up who only waits: he looks elsewhere meanwhile.
WAITING = {"socket_timeout": WAITING_LIMIT_S, "socket_connect_timeout": WAITING_LIMIT_S}

# A peer that vanished without a word is noticed after 45 s, also by a connection that only waits.
_KEEPALIVE = {
    getattr(socket, name): value
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
    if hasattr(socket, name)
}


class BoundedRetry(Retry):
    """Tries again for a time, not a number of times; a connect inside a call shares the time of the call."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(EqualJitterBackoff(cap=0.5, base=0.005), -1, PASSING)
        self._limit_s = limit_s
        self._running = False

    def call_with_retry(self, do: Callable[[], T], fail: Callable[..., Any], *args: Any, **kwargs: Any) -> T:
        if self._running:
            return do()
        deadline = time.monotonic() + self._limit_s

        def fail_for_good(error: Exception, *count: int) -> None:
            fail(error, *count)
            if isinstance(error, FINAL) or time.monotonic() >= deadline:
                raise error

        self._running = True
        try:
            return super().call_with_retry(do, fail_for_good, *args, **kwargs)
        finally:
            self._running = False


class _EmbeddedConnection(UnixDomainSocketConnection):
    """Starts the server when it is not there. A fork's first connection makes the child a user of it."""

    def __init__(self, *, server: EmbeddedServer, **options: Any) -> None:
        cast(Any, super()).__init__(**options)
        self._server = server

    def _connect(self) -> Any:
        self._server.join()
        self.path = str(self._server.socket)
        try:
            return cast(Any, super())._connect()
        except (FileNotFoundError, ConnectionRefusedError):
            self._server.ensure()
            return cast(Any, super())._connect()


class _Cluster(RedisCluster):
    """redis-py's own retries do not wait, and a failover takes seconds: each call gets patience around it."""

    def __init__(self, *, patience_s: float, **options: Any) -> None:
        self._patience_s = patience_s
        cast(Any, super()).__init__(**options)

    def execute_command(self, *args: Any, **kwargs: Any) -> Any:
        once: Callable[..., Any] = cast(Any, super()).execute_command
        return BoundedRetry(self._patience_s).call_with_retry(lambda: once(*args, **kwargs), _go_on)


def _go_on(_error: Exception) -> None:
    """The cluster client has already dropped the connection and read the map of the cluster anew."""
