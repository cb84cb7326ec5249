"""The one place through which every script call goes.

Each file in `lua/` is one operation; the comment at its top is its contract:

    -- KEYS home   hash  the key that routes the call (one for each script)
    -- ARGV pool   text  ...            bound by name; `int` and `ms` arrive as numbers
    -- REST id fence                    the rest of the arguments, in groups of these
    -- FLAGS allow-oom                  flags of the Redis function
    -- FAILS STALE_FENCE                codes it may answer

The loader binds those names, joins all operations to one Redis library and calls them as Redis Functions. Library and
function names carry a digest of the source, so old and new processes run side by side on one server, and a server that
lost the library (flushed, restarted, failed over) gets it again at the first call that misses it.

Here a test puts in its virtual clock (`now`) and its faults (`Faults`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any, Generic, Protocol, TypeVar, cast

from redis import Redis, RedisCluster
from redis.exceptions import RedisClusterException, RedisError, ResponseError

from . import fields, keys, states, waits
from .errors import StoreError, StoreFull, TenureError, refusal
from .joining import joined
from .store_errors import store_error

T = TypeVar("T")
Arg = str | bytes | int
Client = Redis | RedisCluster

SHARED = (
    "base",
    "hour",
    "row",
    "flag",
    "clusters",
    "rates",
    "gates",
    "lines",
    "keys",
    "attempt",
    "history",
    "books",
    "log",
    "notices",
    "bindings",
    "move",
    "groups",
    "advertise",
    "blocker",
    "show",
    "places",
    "create",
    "progress",
    "conclude",
    "by_hand",
    "failures",
    "walk",
    "batches",
    "forget",
    "retention",
    "switch",
    "calendars",
    "fires",
)


@dataclass(frozen=True, slots=True)
class Contract:
    """What a script's header says."""

    name: str
    body: str
    argv: tuple[tuple[str, str], ...]
    rest: tuple[str, ...]
    flags: tuple[str, ...]
    fails: tuple[str, ...]

    @classmethod
    def read(cls, name: str, source: str) -> Contract:
        rows = re.findall(r"^-- (KEYS|ARGV|REST|FLAGS|FAILS) +(.+)$", source, re.MULTILINE)
        words = {kind: [text.split() for found, text in rows if found == kind] for kind, _ in rows}
        return cls(
            name=name,
            body=source,
            argv=tuple((row[0], row[1]) for row in words.get("ARGV", [])),
            rest=tuple(
                word for found, text in rows if found == "REST" for word in text.split("  ")[0].split()
            ),
            flags=tuple(word for row in words.get("FLAGS", []) for word in row),
            fails=tuple(word for row in words.get("FAILS", []) for word in row),
        )

    def lua(self, prefix: str) -> str:
        """The operation as a registered function: bind the names, run the body, write what it put off."""
        names = [name for name, _ in self.argv]
        values = [
            f"tonumber(ARGV[{at}])" if kind in ("int", "ms") else f"ARGV[{at}]"
            for at, (_, kind) in enumerate(self.argv, start=2)
        ]
        bind = f"local {', '.join(names)} = {', '.join(values)}" if names else ""
        flags = ", ".join(f"'{flag}'" for flag in self.flags)
        return (
            "do\n"  # Lua has room for 200 names in one place
            f"local function body(KEYS, ARGV)\n"
            f"local FIRST = {len(self.argv) + 2}\n{bind}\n{self.body}\nend\n"
            f"redis.register_function{{function_name = '{prefix}_{self.name}', flags = {{{flags}}}, "
            f"callback = function(KEYS, ARGV) return run(body, KEYS, ARGV) end}}\nend\n"
        )


class Library:
    """All operations, joined, with the digest that names them."""

    def __init__(self, sources: Mapping[str, str], shared: Mapping[str, str]) -> None:
        self.contracts = {name: Contract.read(name, text) for name, text in sorted(sources.items())}
        tables = [keys.lua_keys(), fields.lua_fields(), states.lua_moves(), waits.lua_waits()]
        operations = [contract.lua("@") for contract in self.contracts.values()]
        prelude = [*tables, joined(shared, operations)]
        text = "\n".join([*prelude, *operations])
        self.version = blake2b(text.encode(), digest_size=5).hexdigest()
        prefix = f"tn_{self.version}"
        body = "\n".join([*prelude, *(contract.lua(prefix) for contract in self.contracts.values())])
        self.source = f"#!lua name=tenure_{self.version}\n{body}"
        self.functions = {name: f"{prefix}_{name}" for name in self.contracts}


@cache
def library() -> Library:
    """The library of this version of Tenure."""
    return Library(*sources())


def sources() -> tuple[dict[str, str], dict[str, str]]:
    """What the library is made of, by name: the operations, and what they share in the order it is joined."""
    lua = files(__package__).joinpath("lua")
    shared = lua.joinpath("shared")
    return (
        {path.name[:-4]: path.read_text() for path in lua.iterdir() if path.name.endswith(".lua")},
        {name: shared.joinpath(f"{name}.lua").read_text() for name in SHARED},
    )


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One script call, not yet sent: which operation, the key that routes it, its arguments by name, how to read it."""

    script: str
    home: str
    args: Mapping[str, Arg]
    parse: Callable[[Any], T]
    rest: Sequence[Arg] = ()


@dataclass(frozen=True, slots=True)
class Begun:
    """Calls that were sent: `answers` waits for what `Scripts.send` would have answered, or raises what it would have
    raised; who does not want to know any more calls `drop`. One of them has to be called, once.
    """

    answers: Callable[[], list[Any]]
    drop: Callable[[], None]


class Faults(Protocol):
    """Where a test breaks things: raise in `before` (never sent) or in `after` (applied, the reply is lost)."""

    def before(self, script: str) -> None: ...

    def after(self, script: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Scripts:
    """Sends calls to the server. `now` is a virtual clock in milliseconds, for tests; None is the server's own."""

    redis: Client
    now: int | None = None
    faults: Faults | None = None
    address: str = "the store"
    library: Library = field(default_factory=library)

    def run(self, call: Call[T]) -> T:
        """Send one call. Raises the refusal as one of our errors, a fault of the server as a StoreError."""
        answer = self.send([call])[0]
        if isinstance(answer, TenureError):
            raise answer
        return cast(T, answer)

    def run_all(self, calls: Sequence[Call[Any]]) -> list[Any]:
        """Send many calls in one round trip; a refused one stands in the answer as the error it is."""
        return self.send(calls)

    def send(self, calls: Sequence[Call[Any]]) -> list[Any]:
        if not calls:
            return []
        commands = self._ready(calls)
        return self._answers(calls, lambda: self._execute(commands))

    def begin(self, calls: Sequence[Call[Any]]) -> Begun:
        """As `send`, but on a plain server it does not wait: meanwhile there is time for something else."""
        begin = getattr(self.redis, "begin", None)
        if begin is None:
            found = self.send(calls)
            return Begun(lambda: found, lambda: None)
        commands = self._ready(calls)
        try:
            sent = begin(commands)
        except RedisError as exc:
            raise store_error(exc, self.address) from exc
        return Begun(
            lambda: self._answers(calls, lambda: self._complete(commands, sent.replies())), sent.drop
        )

    def _ready(self, calls: Sequence[Call[Any]]) -> list[list[Arg]]:
        commands = [self._command(call) for call in calls]
        for call in calls:
            if self.faults:
                self.faults.before(call.script)
        return commands

    def _answers(self, calls: Sequence[Call[Any]], execute: Callable[[], list[Any]]) -> list[Any]:
        try:
            replies = execute()
        except (RedisError, RedisClusterException) as exc:  # the second is not one of the first
            raise store_error(exc, self.address) from exc
        for call in calls:
            if self.faults:
                self.faults.after(call.script)
        return [self._read(call, reply) for call, reply in zip(calls, replies, strict=True)]

    def at(self, now: int) -> Scripts:
        """The same with the virtual clock at `now` (epoch ms)."""
        return Scripts(self.redis, now, self.faults, self.address, self.library)

    def load(self) -> None:
        """Put the library on the server (on every primary of a cluster); harmless when it is there."""
        try:
            cast(Any, self.redis).execute_command("FUNCTION LOAD", "REPLACE", self.library.source)
        except RedisError as exc:
            error = store_error(exc, self.address)
            if isinstance(error, StoreFull):
                raise StoreFull(
                    f"the scripts of this version ({self.library.version}) could not be loaded, because the server is "
                    f"full: {error}",
                    hint="raise maxmemory or free disk space; until then no job can be made, run or ended",
                ) from exc
            raise error from exc

    def pages(self, match: str, count: int) -> Iterator[list[bytes]]:
        """The names of the keys that match, each page from one SCAN over about `count` keys (of every primary in turn).

        Raises the StoreError that the server answers, and is at its end then.
        """
        client = cast(Any, self.redis)
        try:
            for node in client.get_primaries() if isinstance(self.redis, RedisCluster) else [None]:
                where = {} if node is None else {"target_nodes": node}
                cursor = 0
                while True:
                    cursor, names = client.scan(cursor=cursor, match=match, count=count, **where)
                    if node is not None:
                        cursor = cursor[node.name]
                    yield names
                    if cursor == 0:
                        break
        except (RedisError, RedisClusterException) as exc:
            raise store_error(exc, self.address) from exc

    def _command(self, call: Call[Any]) -> list[Arg]:
        contract = self.library.contracts[call.script]
        args = dict(call.args)
        try:
            bound: list[Arg] = [args.pop(name) for name, _ in contract.argv]
        except KeyError as exc:
            raise TypeError(f"script {call.script} needs the argument {exc}") from None
        if args or (call.rest and len(call.rest) % max(1, len(contract.rest))):
            raise TypeError(
                f"script {call.script} got {sorted(args)} and {len(call.rest)} more arguments: see its header"
            )
        now = "" if self.now is None else self.now
        return ["FCALL", self.library.functions[call.script], 1, call.home, now, *bound, *call.rest]

    def _execute(self, commands: list[list[Arg]]) -> list[Any]:
        return self._complete(commands, self._trip(commands))

    def _complete(self, commands: list[list[Arg]], replies: list[Any]) -> list[Any]:
        """The replies, with those to calls that had not met the library on the server asked for again."""
        missing = [at for at, reply in enumerate(replies) if _not_loaded(reply)]
        if missing:
            self.load()
            again = self._trip([commands[at] for at in missing])
            for at, reply in zip(missing, again, strict=True):
                replies[at] = reply
        return replies

    def _trip(self, commands: list[list[Arg]]) -> list[Any]:
        if len(commands) == 1:
            try:
                return [cast(Any, self.redis).execute_command(*commands[0])]
            except ResponseError as exc:
                return [exc]
        ask_all = getattr(self.redis, "ask_all", None)  # of our client for plain servers, a quicker way
        if ask_all is not None:
            return cast("list[Any]", ask_all(commands))
        pipeline = self.redis.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        return cast("list[Any]", pipeline.execute(raise_on_error=False))

    def _read(self, call: Call[Any], reply: Any) -> Any:
        if isinstance(reply, RedisError):
            return refusal(str(reply)) or store_error(reply, self.address)
        return call.parse(reply)


def item(reply: bytes) -> TenureError | None:
    """The refusal of one item of a batch: scripts answer it as `!CODE sentence`; None is an accepted item."""
    return refusal(reply[1:].decode()) if reply.startswith(b"!") else None


def _not_loaded(reply: Any) -> bool:
    return isinstance(reply, ResponseError) and "Function not found" in str(reply)


def texts(reply: Iterable[Any]) -> list[str]:
    """Decode a flat list of bulk strings."""
    return [part.decode() if isinstance(part, bytes) else str(part) for part in reply]


__all__ = [
    "Begun",
    "Call",
    "Contract",
    "Faults",
    "Library",
    "Scripts",
    "StoreError",
    "item",
    "library",
    "texts",
]
