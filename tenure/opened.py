"""What an application opens in a process, at first use: its store, the ledgers over it, its archive."""

from __future__ import annotations

import os
import platform
import threading
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import redis
from redis import Redis

from . import __version__
from .connection import Client, ServerFacts, Store, connect
from .lease.durations import Duration
from .lease.leases import Leases, NamedLease
from .lease.ledger import Ledger
from .lease.ledgers import Ledgers
from .scripts import Scripts
from .scripts.errors import BadInput
from .scripts.kinds import of_kind
from .settings import Settings, safe_url

if TYPE_CHECKING:
    from .archive import Archive, Archiver, Spool


class Opened:
    """An application's settings, and what it opens with them.

    Settings come from the argument, else from `TENURE_*` and `tenure.toml`, at first use. Threads may share
    it, and a fork may carry it over: each process opens clients of its own.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        if settings is not None and not isinstance(settings, Settings):  # pyright: ignore[reportUnnecessaryIsInstance]
            shown = safe_url(settings) if isinstance(settings, str) else repr(settings)
            raise BadInput(
                f"Tenure was given {shown!r:.80}, it takes a Settings",
                hint="Tenure(Settings(redis_url='redis://host:6379/0')), or Tenure() with TENURE_REDIS_URL set",
            )
        self._settings = settings
        self._store: Store | None = None
        self._store_pid = 0
        self._lock = threading.RLock()
        self._ledgers: Ledgers | None = None
        self._leases: dict[str, Leases] = {}
        self._archive: tuple[int, Archive] | None = None

    @property
    def settings(self) -> Settings:
        if self._settings is None:
            self._settings = Settings.load(os.environ, Path.cwd())
        return self._settings

    @property
    def store(self) -> Store:
        """The open store of this process. Raises a StoreError that says what is wrong with it."""
        with self._lock:
            if self._store is None or self._store_pid != os.getpid():
                self._store = connect(self.settings)
                self._store_pid = os.getpid()
                self._leases = {}
                self._ledgers = None
            return self._store

    def redis(self) -> Client:
        return self.store.redis

    def blocking_redis(self) -> Client:
        """A client for calls that wait: pub/sub, blocking pops."""
        return self.store.blocking

    def rq_redis(self) -> Redis:
        """A new client for RQ, of the server its tools look at. Raises BadInput when that is a Redis Cluster."""
        return self.store.for_rq()

    def ledgers(self) -> Ledgers:
        """The ledgers of all tenants, over this process's clients."""
        with self._lock:
            store = self.store
            if self._ledgers is None:
                scripts = Scripts(store.redis, address=store.address)
                self._ledgers = Ledgers(scripts, self.settings.namespace, self.settings.lease_ms)
            return self._ledgers

    def ledger(self, tenant: str = "default") -> Ledger:
        return self.ledgers().of(tenant)

    @of_kind
    def lease(
        self, name: str, ttl: Duration = "30s", wait: Duration = 0, tenant: str = "default"
    ) -> AbstractContextManager[NamedLease]:
        """Hold a named lease while a `with` block runs.

        Raises LeaseTaken when it is not free within `wait`.
        """
        ledger = self.ledger(tenant)
        with self._lock:
            if tenant not in self._leases:
                self._leases[tenant] = Leases(ledger.scripts, ledger.keys, ledger.index, self.blocking_redis)
            leases = self._leases[tenant]
        return leases.hold(name, ttl, wait)

    def check_store(self) -> ServerFacts:
        """Ask the server again; what a job's answer says of its durability is then as it was found."""
        store = self.store
        facts = store.check()
        with self._lock:
            if self._store is store:
                self._store = replace(store, facts=facts)
        return facts

    @property
    def archive(self) -> Archive | None:
        """The archive that the settings name, if any; not opened before it is asked. Raises MissingExtra, BadInput."""
        url = self.settings.archive_url
        with self._lock:
            if url is not None and (self._archive is None or self._archive[0] != os.getpid()):
                from .archive import Archive  # only who has an archive loads SQLAlchemy

                self._archive = (os.getpid(), Archive.at(url))
            return self._archive[1] if url is not None and self._archive else None

    def archive_spool(self) -> Spool | None:
        """Where rows wait on this machine while the archive is away; None without a folder for it. Raises BadInput."""
        from .archive import Spool

        folder = self.settings.spool_folder
        return None if folder is None else Spool(folder)

    def archiver(self, spool: Spool | None = None) -> Archiver:
        """A duty that keeps the archive up to date, to be looped. Raises BadInput when there is no archive."""
        from .archive import Archiver

        if self.archive is None:
            raise BadInput(
                "there is no archive: archive_url is not set",
                hint="TENURE_ARCHIVE_URL=sqlite:////path/archive.db",
            )
        return Archiver(self.ledgers(), self.archive, spool)

    def about(self) -> dict[str, dict[str, object]]:
        """What somebody who looks into a failure should know: versions, settings without secrets."""
        facts = self.store.facts
        return {
            "versions": {
                "tenure": __version__,
                "python": platform.python_version(),
                "platform": platform.platform(),
                "redis-py": redis.__version__,
                "server": f"{facts.product} {facts.version}",
                "durability": facts.durability,
                "cluster": facts.cluster,
            },
            "settings": {**self.settings.shown()},
        }

    def close(self) -> None:
        """Close what this process opened; the last user of an embedded server ends it."""
        with self._lock:
            if self._store is not None and self._store_pid == os.getpid():
                self._store.close()
            self._store = None
            if self._archive is not None and self._archive[0] == os.getpid():
                self._archive[1].close()
            self._archive = None
