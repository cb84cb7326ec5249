"""What a caller passes, held against the annotations of what he calls: a value of another kind is told to him in words.

    @checked
    class JobBook:
        def get(self, job_id: str) -> JobView: ...

    app.jobs.get(5)    # BadInput: job_id 5 is not text; next: get(job_id: str)

Only kinds are looked at here; what a value of the right kind may be is told by whoever takes it.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Any, TypeVar, cast

from .errors import BadInput

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value has to be: in words, and how it is seen."""

    words: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    written: str
    kind: Kind


def checked(owner: type[C]) -> type[C]:
    """Let all public methods of a class refuse arguments that are not of the kinds they are annotated with."""
    for name, method in list(vars(owner).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(owner, name, of_kind(method))
    return owner


def of_kind(method: F) -> F:
    """The same method; it raises BadInput for an argument of another kind than it is annotated with."""

    @cache
    def parameters() -> tuple[tuple[Parameter | None, ...], dict[str, Parameter]]:
        return _parameters(method)  # at the first call: what annotations name may be defined after the class

    @wraps(method)
    def checking(*args: Any, **kwargs: Any) -> Any:
        by_place, by_name = parameters()
        for parameter, value in zip(by_place, args, strict=False):
            if parameter is not None and not parameter.kind.fits(value):
                raise _refusal(method, parameter, value)
        for name, value in kwargs.items():
            parameter = by_name.get(name)
            if parameter is not None and not parameter.kind.fits(value):
                raise _refusal(method, parameter, value)
        return method(*args, **kwargs)

    return cast(F, checking)


def _refusal(method: Callable[..., Any], parameter: Parameter, value: object) -> BadInput:
    return BadInput(
        f"{parameter.name} {value!r:.60} is not {parameter.kind.words}",
        hint=f"{method.__name__}({parameter.written})",
    )


def _parameters(method: Callable[..., Any]) -> tuple[tuple[Parameter | None, ...], dict[str, Parameter]]:
    """Those that have a kind, by place and by name; of `**options` each option by its name."""
    names = vars(sys.modules[method.__module__])
    by_place: list[Parameter | None] = []
    by_name: dict[str, Parameter] = {}
    for one in inspect.signature(method).parameters.values():
        if one.kind is one.VAR_KEYWORD:
            by_name.update(_options(one, names))
            continue
        default = "" if one.default is one.empty else f" = {one.default!r}"
        written = f"{one.name}: {one.annotation}{default}"
        found = _parameter(one.name, one.annotation, written, names)
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            by_place.append(found)
        if found is not None:
            by_name[one.name] = found
    return tuple(by_place), by_name


def _parameter(name: str, annotation: Any, written: str, names: Mapping[str, Any]) -> Parameter | None:
    kind = _kind(_evaluated(annotation, names))
    return None if kind is None else Parameter(name, written, kind)


def _options(one: inspect.Parameter, names: Mapping[str, Any]) -> dict[str, Parameter]:
    """What `**options: Unpack[Options]` takes; any other `**named: Kind` is checked by whoever takes it."""
    options = next(iter(typing.get_args(_evaluated(one.annotation, names))), None)
    if not typing.is_typeddict(options):
        return {}
    theirs = vars(sys.modules[options.__module__])
    written = {name: _written(annotation) for name, annotation in options.__annotations__.items()}
    found = {name: _parameter(name, text, f"{name}: {text}", theirs) for name, text in written.items()}
    return {name: parameter for name, parameter in found.items() if parameter is not None}


def _written(annotation: Any) -> str:
    return annotation.__forward_arg__ if isinstance(annotation, typing.ForwardRef) else str(annotation)


def _evaluated(annotation: Any, names: Mapping[str, Any]) -> Any:
    """What an annotation means; Any if it names what is only there for type checkers."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, dict(names))  # our own source
    except (NameError, TypeError):
        return Any


def _kind(annotation: Any) -> Kind | None:
    """The kind that an annotation stands for; None: any, or one that whoever takes it tells more of."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, UnionType):
        return _either([_kind(part) for part in typing.get_args(annotation)])
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if origin is typing.Literal:
        known = typing.get_args(annotation)
        return Kind(f"one of: {', '.join(map(repr, known))}", lambda value: value in known)
    if origin in (Sequence, Iterable):
        return _many(origin, typing.get_args(annotation)[0])
    if origin in (Mapping, dict):
        return Kind("a dict with names that are text", _is_named)
    if origin is tuple or annotation is Callable or origin is Callable:
        return None
    owner = origin or annotation
    if not isinstance(owner, type) or owner is object or typing.is_typeddict(owner):
        return None
    return Kind(f"a {owner.__name__}", lambda value: isinstance(value, owner))


def _either(kinds: Sequence[Kind | None]) -> Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    words = list(dict.fromkeys(kind.words for kind in known))
    if "a number" in words and "a whole number" in words:
        words.remove("a whole number")
    said = f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]
    return Kind(said, lambda value: any(kind.fits(value) for kind in known))


def _many(origin: Any, of: Any) -> Kind:
    each = _kind(of)

    def fits(value: Any) -> bool:
        if not isinstance(value, origin) or isinstance(value, (str, bytes, bytearray, Mapping)):
            return False
        return each is None or origin is Iterable or all(map(each.fits, value))

    words = "a list" if each is None else f"a list, each of it {each.words}"
    return Kind(words, fits)


def _is_text(value: Any) -> bool:
    """Half a character, as JSON may bring, is none."""
    if not isinstance(value, str):
        return False
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def _is_named(value: Any) -> bool:
    names: Iterable[Any] = value if isinstance(value, Mapping) else [None]
    return all(map(_is_text, names))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_whole(value)


_PLAIN: dict[Any, Kind | None] = {
    Any: None,
    inspect.Parameter.empty: None,
    None: Kind("None", lambda value: value is None),
    NoneType: Kind("None", lambda value: value is None),
    str: Kind("text", _is_text),
    int: Kind("a whole number", _is_whole),
    float: Kind("a number", _is_number),
    bool: Kind("True or False", lambda value: isinstance(value, bool)),
    datetime: Kind("a datetime", lambda value: isinstance(value, datetime)),
    timedelta: Kind("a timedelta", lambda value: isinstance(value, timedelta)),
}
