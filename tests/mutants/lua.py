"""Lua as far as our scripts use it: tokens, and the places of a source that a mutant can be made from.

`read` walks a source by Lua's own grammar and notes statements, conditions and operators with where they stand. It
judges nothing and changes nothing; what it does not understand is a SyntaxError that names the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
    (?P<space> \s+ | --\[\[.*?\]\] | --[^\n]* )
  | (?P<name>  [A-Za-z_]\w* )
  | (?P<number> 0[xX][0-9a-fA-F]+ | \d+(?:\.\d*)?(?:[eE][+-]?\d+)? | \.\d+ )
  | (?P<text>  '(?:\\.|[^'\\\n])*' | "(?:\\.|[^"\\\n])*" | \[\[.*?\]\] )
  | (?P<sign>  \.\.\. | \.\. | == | ~= | <= | >= | [-+*/%^\#<>=(){}\[\];:,.] )
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS = frozenset(
    re.findall(
        r"\w+",
        "and break do else elseif end false for function if in local nil not or repeat return then true until while",
    )
)
_BINARY = frozenset(("+", "-", "*", "/", "%", "^", "..", "==", "~=", "<", "<=", ">", ">=", "and", "or"))
_UNARY = frozenset(("-", "#", "not"))


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Place:
    """A piece of the source, [start, end), and the statement it belongs to.

    `kind` is `call` or `assign` (a whole statement), `inner call` (one whose value is used), `guard` (the condition of
    an `if` whose body returns at once), `if`, `while`, `until` (other conditions), `operator` or `number` (one token).
    """

    kind: str
    start: int
    end: int
    statement: int
    in_function: bool


@dataclass
class Reading:
    """What `read` found. `statements` are all statements in order: where each begins, and whether in a function."""

    source: str
    statements: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    places: list[Place] = field(default_factory=list[Place])

    def text(self, place: Place) -> str:
        return self.source[place.start : place.end]

    def line(self, position: int) -> int:
        return self.source.count("\n", 0, position) + 1


def tokens(source: str) -> Iterator[Token]:
    """Everything but space and comments."""
    at = 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        if not found:
            raise SyntaxError(
                f"line {source.count(chr(10), 0, at) + 1}: no Lua token: {source[at : at + 20]!r}"
            )
        kind = str(found.lastgroup)
        text = found[0]
        if kind != "space":
            yield Token("word" if text in _WORDS else kind, text, at)
        at = found.end()


def read(source: str) -> Reading:
    """Find all places of a source, a chunk or the body of a function. Raises a SyntaxError that names the line."""
    reader = _Reader(source)
    reader.block()
    reader.expect("")
    return reader.found


class _Reader:
    def __init__(self, source: str) -> None:
        self.found = Reading(source)
        self.tokens = [*tokens(source), Token("end", "", len(source))]
        self.at = 0
        self.statement = 0
        self.functions = 0

    # -- tokens -------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    @property
    def end(self) -> int:
        """Where the token before this one ends."""
        return self.tokens[self.at - 1].end

    def next(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def has(self, *texts: str) -> bool:
        """Pass over the next token if it is one of these."""
        if self.now.kind != "text" and self.now.text in texts:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.has(text):
            line = self.found.line(self.now.start)
            raise SyntaxError(
                f"line {line}: {text or 'the end'} expected, found {self.now.text or 'the end'}"
            )

    def note(self, kind: str, start: int, end: int) -> None:
        self.found.places.append(self.place(kind, start, end))

    def place(self, kind: str, start: int, end: int) -> Place:
        return Place(kind, start, end, self.statement, self.functions > 0)

    # -- statements ---------------------------------------------------------------------------------------------------

    def block(self) -> None:
        while self.now.text not in ("", "end", "else", "elseif", "until"):
            outer, self.statement = self.statement, len(self.found.statements)
            self.found.statements.append((self.now.start, self.functions > 0))
            self.one_statement()
            self.has(";")
            self.statement = outer

    def one_statement(self) -> None:
        word = self.now.text if self.now.kind == "word" else ""
        if word == "if":
            self.conditional()
        elif word == "while":
            self.next()
            self.condition("while")
            self.body("do")
        elif word == "do":
            self.body("do")
        elif word == "for":
            self.loop()
        elif word == "repeat":
            self.next()
            self.block()
            self.expect("until")
            self.condition("until")
        elif word == "function":
            self.next()
            self.names(".", ":")
            self.function()
        elif word == "local":
            self.local()
        elif word == "return":
            self.next()
            if self.now.text not in ("", "end", "else", "elseif", "until", ";"):
                self.expressions()
        elif word == "break":
            self.next()
        else:
            self.call_or_assignment()

    def body(self, opening: str) -> None:
        self.expect(opening)
        self.block()
        self.expect("end")

    def conditional(self) -> None:
        while self.has("if", "elseif"):
            start = self.now.start
            slot = len(self.found.places)
            self.expression()
            end = self.end
            self.expect("then")
            kind = "guard" if self.now.text == "return" else "if"
            self.found.places.insert(slot, self.place(kind, start, end))
            self.block()
        if self.has("else"):
            self.block()
        self.expect("end")

    def condition(self, kind: str) -> None:
        start, slot = self.now.start, len(self.found.places)
        self.expression()
        self.found.places.insert(slot, self.place(kind, start, self.end))

    def loop(self) -> None:
        self.expect("for")
        self.names(",")
        if not self.has("=", "in"):
            self.expect("in")
        self.expressions()
        self.body("do")

    def local(self) -> None:
        self.expect("local")
        if self.has("function"):
            self.next()
            self.function()
        else:
            self.names(",")
            if self.has("="):
                self.expressions()

    def names(self, *separators: str) -> None:
        self.next()
        while self.has(*separators):
            self.next()

    def call_or_assignment(self) -> None:
        start = self.now.start
        called = self.suffixed()
        while self.has(","):
            self.suffixed()
        if self.has("="):
            self.expressions()
            self.note("assign", start, self.end)
        elif called:
            self.note("call", start, self.end)
        else:
            self.expect("=")

    # -- expressions --------------------------------------------------------------------------------------------------

    def expressions(self) -> None:
        self.expression()
        while self.has(","):
            self.expression()

    def expression(self) -> None:
        while True:
            while self.has(*_UNARY):
                pass
            self.operand()
            if self.now.kind == "text" or self.now.text not in _BINARY:
                return
            operator = self.next()
            self.note("operator", operator.start, operator.end)

    def operand(self) -> None:
        token = self.now
        if token.kind == "number":
            self.next()
            self.note("number", token.start, token.end)
        elif token.kind == "text" or token.text in ("nil", "true", "false", "..."):
            self.next()
        elif self.has("function"):
            self.function()
        elif token.text == "{":
            self.table()
        elif self.suffixed():
            self.note("inner call", token.start, self.end)

    def function(self) -> None:
        self.expect("(")
        if not self.has(")"):
            self.names(",")
            self.expect(")")
        self.functions += 1
        self.block()
        self.functions -= 1
        self.expect("end")

    def table(self) -> None:
        self.expect("{")
        while not self.has("}"):
            if self.has("["):
                self.index()
                self.expect("=")
            elif self.now.kind == "name" and self.tokens[self.at + 1].text == "=":
                self.at += 2
            self.expression()
            self.has(",", ";")

    def suffixed(self) -> bool:
        """A name or bracket and all that hangs on it; whether the last of that is a call."""
        called = False
        if self.has("("):
            self.expression()
            self.expect(")")
        elif self.now.kind == "name":
            self.next()
        else:
            self.expect("a name")
        while True:
            if self.now.kind == "text":
                self.next()
                called = True
            elif self.has(".", ":"):
                self.next()
                called = False
            elif self.has("["):
                self.index()
                called = False
            elif self.now.text == "{":
                self.table()
                called = True
            elif self.has("("):
                if not self.has(")"):
                    self.expressions()
                    self.expect(")")
                called = True
            else:
                return called

    def index(self) -> None:
        """What stands in brackets. A number there says which of the parts, and is no quantity."""
        before = len(self.found.places)
        self.expression()
        inside = [place for place in self.found.places[before:] if place.kind != "number"]
        self.found.places[before:] = inside
        self.expect("]")
