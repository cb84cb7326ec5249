"""Secrets in what is shown to others: masked by the names of values, by their looks, and wherever they come again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import cast

from ..scripts.errors import BadInput
from .payload import unpack_args
from .reports import cut

MASK = "***"
LEAST = 6
"""A masked value shorter than this is no secret by itself, and would mask half of all text."""
MARGIN = 8_000
"""So much at the cut end of a long text is left out: half a secret may stand there, without what tells that it is one.
Longer than what any look takes, even if all of it became marks, which may be longer than what they stand for.
"""

_NAMES = (
    "password|passwd|passphrase|pwd|secret|token|authorization|apikey|accesskey|privatekey|signingkey|encryptionkey|credential|"
    "cookie|sessionid|cvv|cardnumber"
)
_SECRET_NAME = re.compile(_NAMES)
_LOOSE = re.sub("(?<=api|ess|ate|ing|ion|ard)(?=key|number)|(?<=session)(?=id)", "[ _-]?", _NAMES)
_LOOKS = (
    (re.compile(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{6,}"), rf"\1\2{MASK}"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,100}):[^\s/@]{1,200}@"), rf"\1:{MASK}@"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*"), MASK),
    (
        re.compile(
            r"\b(?:ghp_|gho_|ghs_|github_pat_|glpat-|xox[abprs]-|sk-|sk_live_|rk_live_)[A-Za-z0-9_-]{10,}"
        ),
        MASK,
    ),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), MASK),
    (
        re.compile(
            r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{0,20000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
        ),
        MASK,
    ),
    (
        re.compile(
            # but `TokenError: ` is the name of an error, and what follows is what it says
            rf"(?i)((?:{_LOOSE})(?!(?-i:\w{{0,40}}(?:Error|Exception|Warning):\s))[\w.-]{{0,40}}[\"']?\s{{0,5}}[:=]\s{{0,5}})"
            rf"(\"[^\"\n]{{0,4000}}\"|'[^'\n]{{0,4000}}'|[^\s\"',;&)\]}}]{{1,4000}})"
        ),
        rf"\1{MASK}",
    ),
)


def is_secret_name(name: object) -> bool:
    """Whether a value of this name is a secret: `password`, `X-Api-Key`, `accessToken`, ..."""
    return _is_secret(str(name)[:200])


@lru_cache(4096)
def _is_secret(name: str) -> bool:
    return bool(_SECRET_NAME.search(re.sub(r"[^a-z0-9]", "", name.lower())))


class Redaction:
    """Masks values, and remembers them: what was masked by its name is masked in all text too, wherever it stands."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known: set[str] = set(known)

    def copy(self) -> Redaction:
        """Another one that knows the same."""
        return Redaction(self._known)

    def learn(self, value: object) -> None:
        """Remember the secrets in a value, before any of it is shown."""
        for name, part in _parts(value):
            if name is not None and is_secret_name(name):
                self.know(part)
            else:
                self.learn(part)

    def know(self, value: object) -> None:
        """Remember a value as a secret, with all that it is made of."""
        parts = _parts(value)
        for _, part in parts:
            self.know(part)
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        if not parts and not isinstance(value, (bool, type(None))) and len(text) >= LEAST:
            self._known.add(text)

    def of_job(self, args: bytes, names: Sequence[str] = ()) -> Redaction:
        """One that knows the arguments of a job too, as far as they are text under the name of a secret.

        A number is too often a count (`max_tokens`) to be taken out of all text. `args` are packed; `names` are the
        parameters of the positional ones.
        """
        positional, named = unpack_args(args)
        pairs = [*zip_longest(names[: len(positional)], positional), *named.items()]
        found = [text for name, part in pairs for text in _texts(part, is_secret_name(name or ""))]
        if not found:
            return self
        redaction = self.copy()
        redaction.know(found)
        return redaction

    def masked(self, value: object) -> object:
        """`value` without secrets: those by name, and in its text those that are known or look like one."""
        match value:
            case str():
                return self.text(value)
            case bytes():
                return (
                    MASK
                    if self.text(value.decode("utf-8", "replace")) != value.decode("utf-8", "replace")
                    else value
                )
            case Mapping():
                named = cast("Mapping[object, object]", value)
                return {
                    self.masked(name): MASK if is_secret_name(name) else self.masked(part)
                    for name, part in named.items()
                }
            case list() | tuple():
                return [self.masked(part) for part in cast("Sequence[object]", value)]
            case int() | float() if str(value) in self._known:
                return MASK
            case _:
                return value

    def text(self, text: str) -> str:
        """All of `text`, however long that takes: a second for 2 MB."""
        return _without_looks(self.without_known(text))

    def beginning(self, text: str, limit: int) -> str:
        """`text` in at most `limit` characters. Of a long one only its beginning is looked at."""
        text, wide = self.without_known(text), 2 * limit + MARGIN
        if len(text) <= wide:
            return cut(_without_looks(text), limit)
        return cut(f"{_without_looks(text[:wide])[:-MARGIN]}…", limit)

    def end(self, text: str, limit: int) -> str:
        """The last `limit` characters of `text`. Of a long one only its end is looked at."""
        text, wide = self.without_known(text), 2 * limit + MARGIN
        if len(text) <= wide:
            return _without_looks(text)[-limit:]
        return _without_looks(text[-wide:])[MARGIN:][-limit:]

    def without_known(self, text: str) -> str:
        """`text` without the secrets that are known; what only looks like one stays."""
        for known in sorted(self._known, key=len, reverse=True) if self._known else ():
            text = text.replace(known, MASK)
        return text


def check_secrets(value: object) -> None:
    """Return if `value`, or each of several, can be masked wherever it stands, else refuse it; the error shows none."""
    if isinstance(value, (list, tuple, set, frozenset)):
        for part in cast("Iterable[object]", value):
            check_secrets(part)
    elif not isinstance(value, (str, bytes)):
        raise BadInput(
            f"a {type(value).__name__} cannot be masked: a secret is text",
            hint="app.mask([password, token]); a number as str(number)",
        )
    elif len(value) < LEAST:
        raise BadInput(
            f"a text of {len(value)} characters cannot be masked: the shortest secret has {LEAST}",
            hint="a shorter one would mask half of all text: leave it out of what is logged",
        )


def masked_arguments(
    args: Sequence[object], kwargs: Mapping[str, object], names: Sequence[str] = ()
) -> tuple[list[object], dict[str, object]]:
    """The arguments of a job without secrets; `names` are those of the parameters that take the positional ones."""
    redaction = Redaction()
    hidden = [is_secret_name(name) for name in names[: len(args)]] + [False] * (len(args) - len(names))
    shown = [MASK if hide else redaction.masked(value) for hide, value in zip(hidden, args, strict=True)]
    return shown, {
        name: MASK if is_secret_name(name) else redaction.masked(value) for name, value in kwargs.items()
    }


def masked_names(value: object) -> object:
    """`value` without what stands under the name of a secret. Its text stays as it is."""
    match value:
        case Mapping():
            named = cast("Mapping[object, object]", value)
            return {
                name: MASK if is_secret_name(name) else masked_names(part) for name, part in named.items()
            }
        case list() | tuple():
            return [masked_names(part) for part in cast("Sequence[object]", value)]
        case _:
            return value


def _without_looks(text: str) -> str:
    for looks, instead in _LOOKS:
        text = looks.sub(instead, text)
    return text


def _texts(value: object, secret: bool) -> list[str | bytes]:
    """The text in a value that stands under the name of a secret; all of it, if the value itself does."""
    if isinstance(value, (str, bytes)):
        return [value] if secret else []
    return [
        text
        for name, part in _parts(value)
        for text in _texts(part, secret or (name is not None and is_secret_name(name)))
    ]


def _parts(value: object) -> list[tuple[object | None, object]]:
    """The parts of a value, with their names if they have any."""
    if isinstance(value, Mapping):
        return list(cast("Mapping[object, object]", value).items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(None, part) for part in cast("Iterable[object]", value)]
    return []
