"""Take a body or a query string apart, and tell of everything that is wrong in it at once."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, TypeVar, cast

from ..lease.redaction import Redaction
from ..scripts.errors import BadInput
from ..scripts.keys import check_tenant
from .body import parse, pointed
from .refusals import BadFields, Wrong

T = TypeVar("T")
TEXT_LIMIT = 1000
_REDACTION = Redaction()


class Fields:
    """The fields of one object, by name. What is wrong is remembered; `done` raises it. A null is a field not given.

    `known` are its names; those of `later` are in the contract and not built yet: given, they are refused too, since
    ignoring them would be a lie.
    """

    def __init__(
        self, values: Mapping[str, object], known: Sequence[str], *, later: Sequence[str] = (), at: str = "/"
    ) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}
        self._at = at
        self._wrong: list[Wrong] = []
        for name in values:
            if name in later:
                self.refuse(name, "is not available in this version; leave it out")
            elif name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known) or 'none'}"
                self.refuse(name, f"there is no such field; {hint}")

    @classmethod
    def of_body(cls, body: bytes, known: Sequence[str], *, later: Sequence[str] = ()) -> Fields:
        return cls(parse(body), known, later=later)

    @classmethod
    def of_query(
        cls, pairs: Sequence[tuple[str, str]], known: Sequence[str], *, many: Sequence[str] = ()
    ) -> Fields:
        """Those of a query string; an empty value is one not given, a name given twice is refused, unless it is one of
        `many`, which are arrays.
        """
        arrays = {name: [value for given, value in pairs if given == name] for name in many}
        values = {name: value or None for name, value in pairs if name not in many}
        fields = cls({**values, **{name: array for name, array in arrays.items() if array}}, known, at="?")
        names = [name for name, _ in pairs]
        for name in dict.fromkeys(names):
            if names.count(name) > 1 and name not in many:
                fields.refuse(name, "stands twice; leave one out")
        return fields

    def done(self) -> None:
        """Raise BadFields if anything was wrong."""
        if self._wrong:
            raise BadFields(self._wrong)

    def refuse(self, name: str, message: str, code: str = BadInput.code, *, at: int | None = None) -> None:
        """Remember what is wrong with the field `name`, or with its entry `at`."""
        entry = "" if at is None else f"/{at}"
        self._wrong.append(Wrong(f"{self._at}{pointed(name)}{entry}", message, code))

    @contextmanager
    def checking(self, name: str, *, at: int | None = None, hint: str | None = None) -> Generator[None]:
        """What the block raises as BadInput is what is wrong with the field `name`, or with its entry `at`.

        `hint` stands instead of a hint that speaks to who writes Python.
        """
        try:
            yield
        except BadInput as exc:
            todo = exc.hint if hint is None else hint
            self.refuse(name, f"{exc}; {todo}" if todo else str(exc), exc.code, at=at)

    def text(self, name: str, limit: int = TEXT_LIMIT) -> str | None:
        value = self._values.get(name)
        if value is None or (isinstance(value, str) and 1 <= len(value) <= limit):
            return value
        self.refuse(name, f"must be text of 1 to {limit} characters, it is {_kind(value)}")
        return None

    def reason(self, name: str = "reason", limit: int = TEXT_LIMIT) -> str | None:
        """Why somebody asks for something, as it may be kept and logged: what looks like a secret is masked."""
        text = self.text(name, limit)
        return text and _REDACTION.beginning(text, limit)

    def needed_text(self, name: str, limit: int = TEXT_LIMIT) -> str:
        if name not in self._values:
            self.refuse(name, "must be given: text")
        return self.text(name, limit) or ""

    def choice(self, name: str, known: Sequence[str], default: T) -> str | T:
        value = self.text(name)
        if value is not None and value in known:
            return value
        if value is not None:
            self.refuse(name, f"{_kind(value)} is not one of: {', '.join(known)}")
        return default

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number; in a query string, its digits."""
        value = self._values.get(name, default)
        if (
            isinstance(value, str)
            and self._at == "?"
            and value.isascii()
            and value.isdigit()
            and len(value) < 10
        ):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.refuse(name, f"must be a whole number from {low} to {high}, it is {_kind(value)}")
        return default

    def raw(self, name: str) -> object:
        """A value of any kind, for a reader that tells what it takes; None if it is not given."""
        return self._values.get(name)

    def fine(self, name: str) -> bool:
        """Whether nothing has been found wrong with a field yet."""
        return all(one.pointer != f"{self._at}{pointed(name)}" for one in self._wrong)

    def given(self, name: str) -> bool:
        return name in self._values

    def optional_number(self, name: str, low: int, high: int) -> int | None:
        return self.number(name, low, low, high) if self.given(name) else None

    def flag(self, name: str) -> bool:
        """Whether it is true; not given is false."""
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            self.refuse(name, f"must be true or false, it is {_kind(value)}")
        return value is True

    def array(self, name: str) -> list[object]:
        value = self._values.get(name, [])
        if isinstance(value, list):
            return cast("list[object]", value)
        self.refuse(name, f"must be an array, it is {_kind(value)}")
        return []

    def texts(self, name: str) -> list[str] | None:
        """An array of text; None if it is not given."""
        value = self.array(name)
        if not all(isinstance(one, str) for one in value):
            self.refuse(name, "must be an array of text")
        return [one for one in value if isinstance(one, str)] if name in self._values else None

    def object(self, name: str) -> dict[str, object]:
        value = self._values.get(name, {})
        if isinstance(value, dict):
            return cast("dict[str, object]", value)
        self.refuse(name, f"must be an object, it is {_kind(value)}")
        return {}

    def objects(
        self, name: str, known: Sequence[str], *, later: Sequence[str] = (), most: int
    ) -> list[Fields]:
        """The objects of an array, as fields of their own that share what is wrong with these."""
        found: list[Fields] = []
        values = self.array(name)
        if len(values) > most:
            self.refuse(name, f"has {len(values)} entries, the limit is {most}")
            return found
        for at, value in enumerate(values):
            place = f"{pointed(name)}/{at}"
            if isinstance(value, dict):
                found.append(self._part(cast("dict[str, Any]", value), known, f"{place}/", later))
            else:
                self._wrong.append(Wrong(f"{self._at}{place}", f"must be an object, it is {_kind(value)}"))
        return found

    def part(self, name: str, known: Sequence[str]) -> Fields | None:
        """The object in a field, as fields of its own that share what is wrong with these; None if it is not given."""
        value = self._values.get(name)
        if value is None or isinstance(value, dict):
            return (
                None
                if value is None
                else self._part(cast("dict[str, Any]", value), known, f"{pointed(name)}/")
            )
        self.refuse(name, f"must be an object, it is {_kind(value)}")
        return None

    def _part(
        self, values: Mapping[str, Any], known: Sequence[str], at: str, later: Sequence[str] = ()
    ) -> Fields:
        fields = Fields(values, known, later=later, at=f"{self._at}{at}")
        self._wrong.extend(fields._wrong)
        fields._wrong = self._wrong
        return fields

    def tenant(self) -> str:
        tenant = self.text("tenant") or "default"
        with self.checking("tenant"):
            check_tenant(tenant)
        return tenant


def _kind(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return repr(value) if len(value) <= 60 else f"text of {len(value)} characters"
        case int() | float():
            return f"{value}"
        case list():
            return "an array"
        case _:
            return "an object"
