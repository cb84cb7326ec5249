"""What a worker needs of an application, and how it finds one."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Protocol, cast

from redis import Redis

from ..lease.ledgers import Ledgers
from ..lease.loop import Loop
from ..lease.pools import PoolPlan
from ..lease.tasks import Registry
from ..scripts.errors import BadInput
from ..scripts.loader import Client

VARIABLE = "TENURE_APP"
_SHAPE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class WorkerSettings(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def lease_ms(self) -> int: ...
    @property
    def renew_ms(self) -> int: ...
    @property
    def poll_ms(self) -> int: ...
    @property
    def lanes(self) -> str | None: ...


class Application(Protocol):
    """The registered tasks, the settings, and connections that belong to the process that asks for them."""

    @property
    def registry(self) -> Registry: ...
    @property
    def pools(self) -> Mapping[str, PoolPlan]:
        """What the code says of pools."""
        ...

    @property
    def settings(self) -> WorkerSettings: ...
    def ledgers(self) -> Ledgers: ...
    def upkeep(self) -> Sequence[Loop]:
        """What every process that stays does for the store, to be started and stopped with it."""
        ...

    def blocking_redis(self) -> Client:
        """A client for `lease.waits`: subscriptions, blocking pops."""
        ...

    def rq_redis(self) -> Redis:
        """A new client for RQ. Raises BadInput when there is no server for it."""
        ...


def load_application(name: str | None = None) -> Application:
    """The application `module:name`, by default that of TENURE_APP. Raises BadInput when there is none by that name.

    A module that is found and fails while it is imported raises its own error: that is a fault of the module.
    """
    text = name or os.environ.get(VARIABLE, "")
    if not text:
        raise BadInput(
            "no application was named", hint=f"set {VARIABLE}=module:app, as in {VARIABLE}=shop.jobs:app"
        )
    if not _SHAPE.fullmatch(text):
        raise BadInput(
            f"application {text!r:.120} is not of the form module:name", hint="write it like shop.jobs:app"
        )
    module_name, _, attribute = text.partition(":")
    module = _import(module_name)
    found = getattr(module, attribute, None)
    if found is None:
        raise BadInput(f"module {module_name!r} has no {attribute!r}", hint=_candidates(module_name, module))
    if not isinstance(getattr(found, "registry", None), Registry):
        raise BadInput(
            f"{text} is a {type(found).__name__}, not an application", hint=_candidates(module_name, module)
        )
    return cast(Application, found)


def _import(module_name: str) -> object:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does: the user's module is in the folder he stands in
    importlib.invalidate_caches()
    parts = module_name.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        if not _is_there(name):
            raise BadInput(
                f"there is no module {name!r}",
                hint=f"is it in {here} or on PYTHONPATH, and spelt {module_name!r}?",
            )
    return importlib.import_module(module_name)


def _is_there(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError as exc:
        if exc.name == name:
            return False  # its parent is a plain module and has no parts
        raise


def _candidates(module_name: str, module: object) -> str:
    found = [
        name for name, value in vars(module).items() if isinstance(getattr(value, "registry", None), Registry)
    ]
    return (
        f"it has {', '.join(f'{module_name}:{name}' for name in found)}"
        if found
        else "write app = Tenure() in it"
    )
