"""Cron text to a Schedule, or a refusal that names field, position and rule.

Six or seven fields are Quartz 2.3.2, five are crontab. Everything is bounded before anything is expanded:
the text to 256 characters, a list to 64 items, each number by its field. Where Quartz takes text that its
own documentation gives no meaning (`MON-FRI/2`, `9W,13`), this parser refuses: a guess would fire at the
wrong time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from ..scripts.errors import BadInput
from .cron_fields import (
    FIRST_YEAR,
    LAST_YEAR,
    Dates,
    DayField,
    DayItem,
    Field,
    Item,
    LastDay,
    LastWeekday,
    NearestWeekday,
    NthWeekday,
    Schedule,
    Weekdays,
)

LONGEST = 256
MOST_ITEMS = 64

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]

_MACROS = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}

_VALUE = r"(\d+|[A-Z]+)"
_PLAIN = re.compile(rf"(?:(\*)|{_VALUE}(?:-{_VALUE})?)?(?:/(\d+))?")
_LAST_DAY = re.compile(r"L(?:-(\d+))?(W)?")
_NEAREST = re.compile(r"(\d+)W")
_LAST_WEEKDAY = re.compile(r"(\d+|[A-Z]{3})L|L(\d+|[A-Z]{3})")
_NTH_WEEKDAY = re.compile(rf"{_VALUE}#(\d+)")
_FOREIGN = re.compile(r"[^0-9A-Z*?/,#\- \t]")


class BadCron(BadInput):
    """A cron expression breaks a rule: `field`, `position` (from 1, in the text) and `rule` say which."""

    code = "BAD_CRON"

    def __init__(self, message: str, *, field: str = "", position: int | None = None, rule: str = "") -> None:
        super().__init__(
            message, hint="six or seven fields are Quartz, five are crontab, @daily and its like too"
        )
        self.field = field
        self.position = position
        self.rule = rule or message


@dataclass(frozen=True, slots=True)
class _Kind:
    """What one field of one dialect may hold."""

    name: str
    low: int
    high: int
    names: dict[str, int] = field(default_factory=dict[str, int])
    base: int = 0  # what is written for the inner value 0
    most: int = 0  # the greatest number that may be written, if above `high`
    wraps: bool = True
    step_limit: int | None = None


def _named(names: list[str], start: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names, start)}


_SECOND = _Kind("second", 0, 59, step_limit=59)
_MINUTE = _Kind("minute", 0, 59, step_limit=59)
_HOUR = _Kind("hour", 0, 23, step_limit=23)
_DAY = _Kind("day-of-month", 1, 31, step_limit=31)
_MONTH = _Kind("month", 1, 12, _named(_MONTHS, 1), step_limit=12)
_QUARTZ_WEEKDAY = _Kind("day-of-week", 1, 7, _named(_WEEKDAYS, 1), base=1, step_limit=7)
_CRONTAB_WEEKDAY = _Kind("day-of-week", 0, 6, _named(_WEEKDAYS, 0), most=7, step_limit=7)
_YEAR = _Kind("year", FIRST_YEAR, LAST_YEAR, wraps=False)

_QUARTZ = (_SECOND, _MINUTE, _HOUR, _DAY, _MONTH, _QUARTZ_WEEKDAY, _YEAR)
_CRONTAB = (_MINUTE, _HOUR, _DAY, _MONTH, _CRONTAB_WEEKDAY)


@dataclass(frozen=True, slots=True)
class _Token:
    """A piece of the expression and where it stands, counted from 0."""

    text: str
    at: int


def refusal(field: str, rule: str, position: int | None = None) -> BadCron:
    """The error for a broken rule."""
    place = f" (at character {position})" if position else ""
    return BadCron(f"{field}: {rule}{place}", field=field, position=position, rule=rule)


def normalized(text: str) -> str:
    """The expression in one spelling: upper case, single spaces. Raises BadCron for what cannot be one."""
    return " ".join(token.text for token in _split(text))


def parse(text: str) -> Schedule:
    """The schedule that `text` describes. Raises BadCron."""
    tokens = _split(text)
    if tokens[0].text.startswith("@"):
        return _parse_fields(_split(_macro(tokens)))
    return _parse_fields(tokens)


def _split(text: str) -> list[_Token]:
    if len(text) > LONGEST:
        raise refusal("expression", f"{len(text)} characters are more than {LONGEST}")
    tokens = [_Token(found[0].upper(), found.start()) for found in re.finditer(r"[^ \t]+", text)]
    if not tokens:
        raise refusal("expression", "it is empty", 1)
    for token in tokens:
        # Also before anything is upper-cased into more characters than were written.
        if not token.text.isascii():
            _refuse("expression", token, "only ASCII characters have a meaning")
    return tokens


def _macro(tokens: list[_Token]) -> str:
    name = tokens[0]
    if len(tokens) > 1 or name.text not in _MACROS:
        known = ", ".join(_MACROS).lower()
        _refuse("expression", name, f"{name.text.lower()!r} is not one of {known}, alone")
    return _MACROS[name.text]


def _parse_fields(tokens: list[_Token]) -> Schedule:
    count = len(tokens)
    if not 5 <= count <= 7:
        extra = tokens[-1] if count < 5 else tokens[7]
        _refuse("expression", extra, f"{count} fields; crontab has 5, Quartz 6 or 7")
    quartz = count > 5
    kinds = _QUARTZ if quartz else _CRONTAB
    by_name = {kind.name: (kind, token) for kind, token in zip(kinds, tokens, strict=False)}
    if quartz:
        _check_day_marks(by_name["day-of-month"][1], by_name["day-of-week"][1])
    plain = {
        name: _plain_field(kind, token, quartz)
        for name, (kind, token) in by_name.items()
        if not name.startswith("day")
    }
    day = _day_field(*by_name["day-of-month"], quartz)
    weekday = _day_field(*by_name["day-of-week"], quartz)
    return Schedule(
        second=plain.get("second", _ON_THE_MINUTE),
        minute=plain["minute"],
        hour=plain["hour"],
        day=day,
        month=plain["month"],
        weekday=weekday,
        year=plain.get("year", _EVERY_YEAR),
        either_day=not (quartz or day.whole or weekday.whole),
    )


def _check_day_marks(day: _Token, weekday: _Token) -> None:
    if day.text == "?" and weekday.text == "?":
        _refuse("day-of-week", weekday, "'?' may stand in one day field only")
    if day.text != "?" and weekday.text != "?":
        _refuse("day-of-week", weekday, "with seconds (Quartz), one of the two day fields must be '?'")


# One field


def _plain_field(kind: _Kind, token: _Token, quartz: bool) -> Field:
    return _field(kind, _items(kind, token), token.text, quartz)


def _field(kind: _Kind, tokens: list[_Token], text: str, quartz: bool) -> Field:
    items: list[Item] = []
    values: set[int] = set()
    for token in tokens:
        item = _item(kind, token, quartz)
        items.append(item)
        values.update(_values(kind, item))
    return Field(
        tuple(items),
        tuple(sorted(values)),
        whole=text in ("*", "?"),
        starred=text.startswith(("*", "/")),
    )


def _day_field(kind: _Kind, token: _Token, quartz: bool) -> DayField:
    """Days: plain numbers and, each as one item, the forms with `L`, `W` and `#`."""
    weekdays = kind.names != {}
    if token.text == "?":
        token = _Token("*", token.at)
    pieces = _items(kind, token)
    special: list[DayItem] = []
    plain: list[_Token] = []
    for piece in pieces:
        found = _weekday_form(kind, piece, quartz) if weekdays else _date_form(kind, piece)
        if found is None:
            plain.append(piece)
        elif quartz and len(pieces) > 1:
            _refuse(kind.name, piece, f"{piece.text!r} may not stand in a list")
        else:
            special.append(found)
    if plain:
        numbers = _field(kind, plain, token.text, quartz)
        special.insert(0, Weekdays(numbers) if weekdays else Dates(numbers))
    return DayField(tuple(special), whole=token.text == "*")


def _date_form(kind: _Kind, token: _Token) -> DayItem | None:
    if found := _LAST_DAY.fullmatch(token.text):
        before = int(found[1] or 0)
        if before > 30:
            _refuse(kind.name, token, f"L-{before} is above L-30")
        return LastDay(before, nearest_weekday=bool(found[2]))
    if found := _NEAREST.fullmatch(token.text):
        return NearestWeekday(_number(kind, token, found[1]))
    return None


def _weekday_form(kind: _Kind, token: _Token, quartz: bool) -> DayItem | None:
    if token.text == "L":
        if quartz:
            return Weekdays(
                _field(kind, [_Token("7", token.at)], "7", quartz)
            )  # plainly Saturday, says Quartz
        _refuse(kind.name, token, "'L' needs a weekday here, as in '5L' for the last Friday")
    if found := _LAST_WEEKDAY.fullmatch(token.text):
        if quartz and found[2]:
            _refuse(kind.name, token, f"write {found[2] + 'L'!r}, not {token.text!r}")
        return LastWeekday(_weekday(kind, _number(kind, token, found[1] or found[2])))
    if found := _NTH_WEEKDAY.fullmatch(token.text):
        nth = int(found[2])
        if not 1 <= nth <= 5:
            _refuse(kind.name, token, f"{nth} after '#' is not 1 to 5")
        return NthWeekday(_weekday(kind, _number(kind, token, found[1])), nth)
    return None


def _items(kind: _Kind, token: _Token) -> list[_Token]:
    """The members of a list, each with its place."""
    pieces = token.text.split(",", MOST_ITEMS)
    if len(pieces) > MOST_ITEMS:
        _refuse(kind.name, token, f"a list of more than {MOST_ITEMS} items")
    tokens: list[_Token] = []
    at = token.at
    for piece in pieces:
        tokens.append(_Token(piece, at))
        if not piece:
            _refuse(kind.name, tokens[-1], "a list member is empty")
        at += len(piece) + 1
    return tokens


# One item: `*`, `n`, `a-b`, each with an optional step


def _item(kind: _Kind, token: _Token, quartz: bool) -> Item:
    found = _PLAIN.fullmatch(token.text)
    if found is None:
        _explain(kind, token)
    star, first, last, step_text = found.groups()
    step = (
        None if step_text is None else _step(kind, token, step_text, ranged=last is not None, quartz=quartz)
    )
    if first is None:
        if not star and not quartz:
            _refuse(kind.name, token, f"nothing stands before '/'; write '*{token.text}'")
        return Item(kind.low - kind.base, kind.high - kind.base, step or 1)
    if quartz and step is not None and not (first.isdigit() and (last or "0").isdigit()):
        _refuse(kind.name, token, "a step after a name is not taken by Quartz; write the range in numbers")
    low = _number(kind, token, first) - kind.base
    if last is None:
        return Item(low, kind.high - kind.base, step) if step else Item(low, low)
    high = _number(kind, token, last) - kind.base
    if high < low and not kind.wraps:
        _refuse(kind.name, token, f"the range {first}-{last} runs backwards")
    if step == 0:
        return Item(low, low)  # so does Quartz
    return Item(low, high, step or 1)


def _step(kind: _Kind, token: _Token, text: str, *, ranged: bool, quartz: bool) -> int:
    step = int(text)
    if step == 0 and not quartz:
        _refuse(kind.name, token, "a step of 0 goes nowhere")
    if kind.step_limit is not None and step > kind.step_limit and not ranged:
        _refuse(kind.name, token, f"step {text} is above {kind.step_limit}")
    return step


def _number(kind: _Kind, token: _Token, text: str) -> int:
    """A number or a name of this field, within its bounds, as written."""
    if not text.isdigit():
        if text in kind.names:
            return kind.names[text]
        if not kind.names:
            _refuse(kind.name, token, f"{text!r} is not a number")
        names = list(kind.names)
        _refuse(kind.name, token, f"{text!r} is not one of {names[0]} to {names[-1]}")
    number, most = int(text), kind.most or kind.high
    if number < kind.low:
        _refuse(kind.name, token, f"{text} is below {kind.low}")
    if number > most:
        _refuse(kind.name, token, f"{text} is above {most}")
    return number


def _weekday(kind: _Kind, number: int) -> int:
    return (number - kind.base) % 7


def _values(kind: _Kind, item: Item) -> Iterable[int]:
    """The values of an item; a range that ends before it starts runs over the edge, its step going on."""
    if not kind.wraps:
        return range(item.first, item.last + 1, item.step)
    low, period = kind.low - kind.base, kind.high - kind.low + 1
    last = item.last if item.first <= item.last else item.last + period
    return [(value - low) % period + low for value in range(item.first, last + 1, item.step)]


_ON_THE_MINUTE = Field((Item(0, 0),), (0,))
_EVERY_YEAR = Field(
    (Item(FIRST_YEAR, LAST_YEAR),), tuple(range(FIRST_YEAR, LAST_YEAR + 1)), whole=True, starred=True
)


# Refusals


def _explain(kind: _Kind, token: _Token) -> NoReturn:
    """Say which rule of the grammar an item breaks."""
    text = token.text
    if foreign := _FOREIGN.search(text):
        _refuse(kind.name, _Token(text, token.at + foreign.start()), f"{foreign[0]!r} has no meaning here")
    if "?" in text:
        _refuse(kind.name, token, "'?' stands alone, and in the day fields only")
    if text.startswith("-"):
        _refuse(kind.name, token, f"{text} is below {kind.low}")
    if "#" in text:
        rule = "'#' stands once, as in 'FRI#2'" if "week" in kind.name else "'#' belongs to day-of-week"
        _refuse(kind.name, token, rule)
    if text.count("/") > 1:
        _refuse(kind.name, token, f"{text!r} has more than one step")
    if text.endswith("/"):
        _refuse(kind.name, token, f"{text!r} has no number after '/'")
    _refuse(kind.name, token, f"{text!r} is not a number, a name, a range or a step")


def _refuse(name: str, token: _Token, rule: str) -> NoReturn:
    raise refusal(name, rule, token.at + 1)
