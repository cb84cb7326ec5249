"""JobKey: what names a schedule inside a tenant, as in Quartz: a group and a name."""

from __future__ import annotations

from dataclasses import dataclass

from ..scripts.errors import BadInput

DEFAULT_GROUP = "DEFAULT"
LIMIT = 200


@dataclass(frozen=True, slots=True, order=True)
class JobKey:
    """`JobKey("daily", group="reports")`, written `reports.daily`.

    Raises BadInput for control characters or over 200 bytes.
    """

    name: str
    group: str = DEFAULT_GROUP

    def __post_init__(self) -> None:
        _check(self.name, "name")
        _check(self.group, "group")
        if "." in self.name:
            raise BadInput(
                f"JobKey name {self.name!r:.80} has a dot: the dot divides group and name", hint="use '-'"
            )
        if len(str(self).encode()) > LIMIT:
            raise BadInput(f"JobKey {str(self)!r:.80} is longer than {LIMIT} bytes")

    @classmethod
    def parse(cls, text: str | JobKey) -> JobKey:
        """The part before the last dot is the group; without a dot the group is DEFAULT."""
        if isinstance(text, JobKey):
            return text
        if not isinstance(text, str):
            raise BadInput(f"JobKey {text!r:.80} is not text", hint="write it like 'reports.daily'")
        group, dot, name = text.rpartition(".")
        return cls(name, group if dot else DEFAULT_GROUP)

    def __str__(self) -> str:
        return self.name if self.group == DEFAULT_GROUP else f"{self.group}.{self.name}"


def _check(text: str, what: str) -> None:
    if not isinstance(text, str) or not text or not text.isprintable() or text != text.strip():
        raise BadInput(
            f"JobKey {what} {text!r:.80} is not allowed: printable text without space at its ends",
            hint="write it like 'reports.daily'",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput(f"JobKey {what} {text!r:.80} is not valid text") from None
