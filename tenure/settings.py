"""What Tenure is told from outside: `TENURE_*` in the environment, over `tenure.toml` in its folder."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, TypeGuard, get_args
from urllib.parse import urlsplit

from .lease.pools import lanes_of
from .scripts.errors import BadInput
from .scripts.store_errors import safe_url

Durability = Literal["memory", "process", "disk"]
DURABILITIES: tuple[Durability, ...] = get_args(Durability)

__all__ = ["DURABILITIES", "Durability", "Settings", "safe_url"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One process's settings. Each field is `TENURE_` and its name in capitals, or a key of `tenure.toml`."""

    redis_url: str | None = None
    """The store; None is the embedded server in `data`."""
    rq_url: str | None = None
    """A plain server for RQ's register, heartbeats and commands; None is the store's own."""
    data: Path | None = None
    """Folder of the embedded server; None only when the store is a URL."""
    server: Path | None = None
    """A server binary to use for it instead of the one found."""
    namespace: str = "tn"
    durability: Durability | None = None
    """What the store must reach at least; None takes what it gives."""
    app: str | None = None
    """Where workers find the application: `module:name`."""
    lanes: str | None = None
    """Lanes of pools, over what the code declares: `io=async(50), mail=exclusive`."""
    archive_url: str | None = None
    """The database that keeps what the store lets go, as SQLAlchemy names it; None is no archive."""
    spool: Path | None = None
    """Folder in which an archiver keeps rows while that database is away; None is `spool` in `data`."""
    lease_ms: int = 60_000
    renew_ms: int = 15_000
    poll_ms: int = 2_000

    def __post_init__(self) -> None:
        self._check_types()
        if self.redis_url is not None:
            _check_url("redis_url", self.redis_url)
        elif self.data is None:
            raise BadInput(
                "no place for the embedded server's data: neither HOME nor XDG_DATA_HOME is set",
                hint="set TENURE_DATA to a folder you may write, or TENURE_REDIS_URL to a server",
            )
        if self.rq_url is not None:
            _check_url("rq_url", self.rq_url)
        _check_text("namespace", self.namespace, r"[a-z0-9][a-z0-9-]{0,62}", "tn, shop-test")
        if self.app is not None:
            _check_text("app", self.app, r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", "shop.jobs:app")
        if self.lanes is not None:
            lanes_of(self.lanes)
        if self.archive_url is not None and "://" not in self.archive_url:
            raise BadInput(
                "archive_url is not a URL of a database",
                hint="set TENURE_ARCHIVE_URL=postgresql+psycopg://user@host/name, or sqlite:////path/archive.db",
            )
        for name in ("lease_ms", "renew_ms", "poll_ms"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is {getattr(self, name)}: it must be at least 1 millisecond")
        if not self.renew_ms < self.lease_ms / 2:
            raise BadInput(
                f"renew_ms is {self.renew_ms} and lease_ms is {self.lease_ms}: one missed renewal would lose "
                "the lease of a healthy worker, so renew_ms must be less than half of lease_ms",
                hint=f"set TENURE_RENEW_MS to {self.lease_ms // 4}",
            )

    def _check_types(self) -> None:
        for names, kind, what in (
            (("redis_url", "rq_url", "archive_url", "app", "lanes"), (str, type(None)), "text or None"),
            (("data", "server", "spool"), (Path, type(None)), "a Path or None"),
            (("namespace",), (str,), "text"),
            (("durability",), (str, type(None)), f"one of {', '.join(DURABILITIES)}, or None"),
            (("lease_ms", "renew_ms", "poll_ms"), (int,), "a whole number of milliseconds"),
        ):
            for name in names:
                value: object = getattr(self, name)
                if not isinstance(value, kind) or isinstance(value, bool):
                    shown = (
                        type(value).__name__ if name.endswith("url") else repr(value)
                    )  # it may hold a password
                    raise BadInput(f"{name} is {shown:.60}: it must be {what}")
        if self.durability is not None and not _is_durability(self.durability):
            raise BadInput(
                f"durability is {self.durability!r:.40}: it must be one of {', '.join(DURABILITIES)}"
            )

    @property
    def spool_folder(self) -> Path | None:
        """Where an archiver spools; None when there is no place for it."""
        return self.spool or (self.data / "spool" if self.data else None)

    def shown(self) -> dict[str, str | int | None]:
        """The settings as they may be shown: no password in an address."""
        return {field.name: _shown(field.name, getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def load(cls, env: Mapping[str, str], cwd: Path) -> Settings:
        """Read the environment and `cwd/tenure.toml`. Raises BadInput on a value that breaks a rule."""
        _refuse_typos(env)
        found: dict[str, object] = _read_file(cwd / "tenure.toml")
        _refuse_empty(found, f"a key of {cwd / 'tenure.toml'}")
        told = {name: env[_env_name(name)] for name in _names() if _env_name(name) in env}
        _refuse_empty({_env_name(name): value for name, value in told.items()}, "in the environment")
        found |= told
        values = _Values(found, env, cwd)
        return cls(
            redis_url=values.text("redis_url"),
            rq_url=values.text("rq_url"),
            data=values.path("data") or _default_data(env),
            server=values.path("server"),
            namespace=values.text("namespace") or cls.namespace,
            durability=values.durability(),
            app=values.text("app"),
            lanes=values.text("lanes"),
            archive_url=values.text("archive_url"),
            spool=values.path("spool"),
            lease_ms=values.number("lease_ms", cls.lease_ms),
            renew_ms=values.number("renew_ms", cls.renew_ms),
            poll_ms=values.number("poll_ms", cls.poll_ms),
        )


@dataclass(frozen=True, slots=True)
class _Values:
    """Raw values by setting, turned into the types of `Settings`."""

    found: Mapping[str, object]
    env: Mapping[str, str]
    cwd: Path

    def text(self, name: str) -> str | None:
        value = self.found.get(name)
        if value is None or isinstance(value, str):
            return value
        raise BadInput(f"{name} is {value!r}: it must be text")

    def number(self, name: str, default: int) -> int:
        value = self.found.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}", value):
            return int(value)
        raise BadInput(f"{name} is {value!r}: it must be a whole number of milliseconds, as {default}")

    def path(self, name: str) -> Path | None:
        value = self.text(name)
        if value is None:
            return None
        if value == "~" or value.startswith("~/"):
            if not self.env.get("HOME"):
                raise BadInput(
                    f"{name} is {value!r}: HOME is not set, so ~ means nothing", hint="write the whole path"
                )
            value = self.env["HOME"] + value[1:]
        return self.cwd / value

    def durability(self) -> Durability | None:
        value = self.text("durability")
        if value is None or _is_durability(value):
            return value
        raise BadInput(f"durability is {value!r}: it must be one of {', '.join(DURABILITIES)}")


def _shown(name: str, value: str | int | Path | None) -> str | int | None:
    if isinstance(value, Path):
        return str(value)
    return safe_url(value) if name.endswith("_url") and isinstance(value, str) else value


def _is_durability(value: str) -> TypeGuard[Durability]:
    return value in DURABILITIES


def _names() -> list[str]:
    return [field.name for field in fields(Settings)]


def _env_name(name: str) -> str:
    return f"TENURE_{name.upper()}"


def _default_data(env: Mapping[str, str]) -> Path | None:
    shared = env.get("XDG_DATA_HOME", "")
    if shared.startswith("/"):  # the XDG rule: a relative path is to be ignored
        return Path(shared, "tenure")
    return Path(env["HOME"], ".local/share/tenure") if env.get("HOME") else None


def _read_file(path: Path) -> dict[str, object]:
    try:
        found: dict[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise BadInput(f"{path} cannot be read: {exc}", hint="repair the file, or move it away") from exc
    for key in found:
        if key not in _names():
            raise BadInput(f"{path} has the key {key!r}, which is no setting", hint=_nearest(key, _names()))
    return found


def _refuse_empty(values: Mapping[str, object], where: str) -> None:
    """An empty value is a forgotten one, and would silently mean the default: another server, other keys."""
    for name, value in values.items():
        if value == "":
            raise BadInput(f"{name}, {where}, is set but empty", hint="give it a value, or leave it out")


def _refuse_typos(env: Mapping[str, str]) -> None:
    """A misspelt variable would silently mean the default; others with TENURE_ may be the user's own."""
    known = [_env_name(name) for name in _names()]
    for name in env:
        if (
            name.startswith("TENURE_")
            and name not in known
            and get_close_matches(name, known, 1, cutoff=0.85)
        ):
            raise BadInput(f"{name} is set, which is no setting", hint=_nearest(name, known))


def _nearest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else f"the settings are {', '.join(known)}"


def _check_text(name: str, value: str, pattern: str, example: str) -> None:
    if not re.fullmatch(pattern, value):
        raise BadInput(f"{name} is {value!r}: it must match {pattern}", hint=f"for example {example}")


def _check_url(name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        at = parts.path if parts.scheme == "unix" else f"{parts.hostname or ''}:{parts.port or ''}"
        good = parts.scheme in ("redis", "rediss", "unix") and at not in ("", ":")
        good = good and (parts.scheme == "unix" or bool(re.fullmatch(r"(/[0-9]*)?", parts.path)))
    except ValueError:  # a port that is no number, an open bracket
        good = False
    if not good:
        raise BadInput(
            f"{name} is {safe_url(url)!r}: it must be redis://host:port/db, rediss://… or unix:///path",
            hint=f"set {_env_name(name)}=redis://localhost:6379/0 (in a password, / is %2F and # is %23)",
        )
