"""The loader and what every script shares: contracts, the library that comes back by itself, exact values, one slot."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError

from tenure.lease.index import TenantIndex
from tenure.lease.ledger import Ledger, NewJob, new_token
from tenure.lease.ledgers import Ledgers
from tenure.lease.outcome import Fail, NextChunk, Succeed
from tenure.lease.payload import pack_args, unpack_args
from tenure.scripts import Call, Scripts
from tenure.scripts.errors import StoreError, TenureError
from tenure.scripts.fields import BLOB_LIMIT, DEFAULTS, FIELDS, PIECES
from tenure.scripts.joining import joined
from tenure.scripts.loader import SHARED, Library, library, sources
from tenure.scripts.states import ENDED, MOVES, State
from tenure.testing import START, Server

from .given import At, Store, claim, running, view

LUA = Path(str(files("tenure.scripts").joinpath("lua")))
SCRIPTS = sorted(LUA.glob("*.lua"))
ALL_LUA = sorted(LUA.rglob("*.lua"))


# -- contracts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_says_what_it_does_and_names_its_arguments(path: Path) -> None:
    source = path.read_text()
    contract = library().contracts[path.stem]

    assert re.match(r"-- [A-Z]", source), "the first line says in a sentence what the script does"
    assert re.search(r"^-- GIVES|^-- FAILS", source, re.MULTILINE), "the header says what it answers"
    for name, kind in contract.argv:
        assert kind in ("text", "int", "ms"), f"{name} is of kind {kind}"
        assert re.search(rf"\b{name}\b", re.sub(r"(?m)^--.*", "", source)), f"{name} is never used"


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_refuses_only_with_codes_of_its_contract(path: Path) -> None:
    source = path.read_text()
    codes = set(re.findall(r"refuse\('([A-Z_]+)'", source))

    assert codes <= set(library().contracts[path.stem].fails)


def test_every_shared_file_is_in_the_library() -> None:
    assert sorted(SHARED) == sorted(path.stem for path in LUA.joinpath("shared").glob("*.lua"))


def test_no_shared_name_hides_another() -> None:
    """All shared files are one text: a second function of a name would be called in place of the first."""
    text = "\n".join(path.read_text() for path in LUA.joinpath("shared").glob("*.lua"))
    names = re.findall(r"^local function (\w+)|^local (\w+) *=", text, re.MULTILINE)

    assert sorted({"".join(name) for name in names}) == sorted("".join(name) for name in names)


@pytest.mark.parametrize("path", ALL_LUA, ids=lambda path: path.stem)
def test_lua_keeps_clear_of_its_traps(path: Path) -> None:
    """tostring loses digits of large numbers, cjson rewrites values, and a second clock would not be the tests' own."""
    source = re.sub(r"--.*", "", path.read_text())

    assert "tostring(" not in source, "text() keeps all digits"
    assert "cjson" not in source, "payloads are bytes, never looked into"
    assert "loadstring" not in source
    assert path.stem == "base" or "'TIME'" not in source, "there is one clock, in base.lua"


def test_a_call_with_a_missing_or_unknown_argument_is_the_programmers_mistake(ledger: Ledger) -> None:
    for args in ({}, {"limit": 1, "odd": 2}):
        with pytest.raises(TypeError, match="script reap"):
            ledger.scripts.run(Call("reap", ledger.keys.home, args, list))


def test_another_version_of_a_script_is_another_function() -> None:
    """So that old and new processes can run side by side on one server."""
    old = Library({"ping": "-- FLAGS no-writes\nreturn 1"}, {})
    new = Library({"ping": "-- FLAGS no-writes\nreturn 2"}, {})

    assert old.functions["ping"] != new.functions["ping"]
    assert old.source.splitlines()[0] != new.source.splitlines()[0]


# -- the table of states ----------------------------------------------------------------------------------------------


def test_every_move_leads_from_a_state_to_a_state() -> None:
    assert {move: (*steps, *steps.values()) for move, steps in MOVES.items()}
    assert all(state in State for steps in MOVES.values() for step in steps.items() for state in step)


def test_only_a_person_leads_a_job_out_of_an_ended_state() -> None:
    leaving = {move for move, steps in MOVES.items() if ENDED & set(steps)}

    assert leaving == {"cancel", "skip", "retry"}


def test_short_field_names_are_unique_and_no_attempts() -> None:
    assert len(set(FIELDS.values())) == len(FIELDS)
    assert not [short for short in FIELDS.values() if re.fullmatch(r"[aw]\d+", short)]
    assert set(DEFAULTS) <= set(FIELDS)


# -- the library comes back by itself ---------------------------------------------------------------------------------


def flush(server: Server) -> None:
    server.redis.execute_command("FUNCTION FLUSH")


def test_a_server_that_lost_the_library_gets_it_again_at_the_first_call(
    ledger: Ledger, tenure_server: Server
) -> None:
    job = ledger.enqueue(NewJob("report"))
    flush(tenure_server)
    lease = claim(ledger)
    flush(tenure_server)
    ledger.settle(lease, Succeed())
    flush(tenure_server)

    assert ledger.get(job.id).status == "succeeded"


def test_a_pipeline_whose_library_is_gone_applies_each_call_once(
    ledger: Ledger, tenure_server: Server
) -> None:
    leases = [running(ledger) for _ in range(3)]
    calls: list[Call[Any]] = [ledger.settle_call([(lease.id, lease.fence, Succeed())]) for lease in leases]
    calls.append(ledger.claim_call("advance", "one", 1, new_token()))
    flush(tenure_server)

    answers = ledger.scripts.run_all(calls)

    assert [refused for refusals, _ in answers[:3] for refused in refusals] == [None, None, None]
    assert answers[3].reason == "no_jobs"


def test_loading_twice_is_harmless(ledger: Ledger) -> None:
    ledger.scripts.load()
    ledger.scripts.load()

    assert ledger.enqueue(NewJob("report")).created


def test_many_calls_of_one_trip_answer_in_order_and_a_refused_one_is_its_error(ledger: Ledger) -> None:
    lease = running(ledger)
    index = TenantIndex(ledger.scripts, ledger.keys.namespace)
    calls: list[Call[Any]] = [
        ledger.renew_call([(lease.id, lease.fence)]),
        Call(
            "cancel",
            ledger.keys.home,
            {"verb": "cancel", "id": "nowhere", "reason": "", "by": ""},
            bytes.decode,
        ),
        index.take_call("fire", 0),
    ]

    renewed, refused, visit = ledger.scripts.run_all(calls)

    assert renewed == [lease.expires_at]
    assert isinstance(refused, TenureError)
    assert visit.now_ms == START
    assert ledger.scripts.run_all([]) == []


def test_a_fault_of_the_server_is_a_store_error_with_the_servers_words(ledger: Ledger) -> None:
    broken = Scripts(
        ledger.scripts.redis, address="the store", library=Library({"odd": "return redis.call('ODD')"}, {})
    )

    with pytest.raises(StoreError, match="the store"):
        broken.run(Call("odd", ledger.keys.home, {}, str))


# -- time -------------------------------------------------------------------------------------------------------------


def test_without_a_virtual_clock_the_servers_own_is_used(ledgers: Ledgers, tenure_server: Server) -> None:
    real = Ledgers(Scripts(tenure_server.redis), ledgers.namespace).of("acme")
    seconds, micros = tenure_server.redis.time()
    before = seconds * 1000 + micros // 1000

    created = real.get(real.enqueue(NewJob("report")).id).created_at

    assert before <= created < before + 60_000


# -- values come back exact -------------------------------------------------------------------------------------------

EXACT: list[Any] = [
    130775545883395173,
    9007199254740993,
    -1,
    1e-7,
    9223372036854775807,
    18446744073709551615,
    -9223372036854775808,
    0.1 + 0.2,
    -0.0,
    b"\x00\xff\r\n",
    "naïve \U0001f680 \u0000",
    [],
    {},
    None,
    True,
    {"deep": [{"er": [1, 2.5, b"x"]}]},
]


def test_values_pass_through_enqueue_delay_retry_and_chunks_unchanged(ledger: Ledger, at: At) -> None:
    args = pack_args(EXACT, {"more": EXACT})
    ledger.enqueue(NewJob("report", args, when="+1000"))

    lease = claim(at(START + 1000))
    at(START + 1000).settle(lease, Fail("once more"))
    lease = claim(at(START + 2000))
    at(START + 2000).settle(lease, NextChunk(args))
    lease = claim(at(START + 3000))
    at(START + 3000).settle(lease, Succeed(args))

    assert lease.args == lease.cursor == view(ledger, lease).result == args
    assert repr(unpack_args(lease.args)) == repr((EXACT, {"more": EXACT}))


VERY_LONG = BLOB_LIMIT * PIECES


def near(size: int) -> tuple[int, ...]:
    return size - 1, size, size + 1


@pytest.mark.parametrize("size", [0, 1, *near(BLOB_LIMIT), *near(VERY_LONG), 200_000])
def test_values_of_any_length_come_back(ledger: Ledger, store: Store, size: int) -> None:
    value = bytes(n % 251 for n in range(size))
    lease = running(ledger, args=value, fields={"background": "1"})
    ledger.report(lease, cursor=value or b"c", done=1)
    ledger.settle(lease, Succeed(value))

    found = view(ledger, lease)

    assert (lease.args, found.args, found.result) == (value, value, value)
    assert found.cursor == value or not value


def test_a_value_that_shrinks_and_grows_leaves_nothing_behind(ledger: Ledger, store: Store) -> None:
    lease = running(ledger, fields={"background": "1"})

    for size in (100, 10, 64, 65, 1, *near(VERY_LONG), 600, 1, 600, 129, 128, 700, 200, 100, 300):
        ledger.report(lease, cursor=b"x" * size, done=size)
        assert view(ledger, lease).cursor == b"x" * size
        assert len([name for name in store.dump() if ":b:" in name]) == (size > VERY_LONG)


def test_a_row_with_long_values_keeps_the_compact_form(ledger: Ledger, tenure_server: Server) -> None:
    if tenure_server.kind == "fakeredis":
        pytest.skip("an imitation has no forms")
    lease = running(ledger, args=b"a" * VERY_LONG, idempotency_key="k" * VERY_LONG)
    ledger.settle(lease, Succeed(b"r" * VERY_LONG))

    form = tenure_server.redis.execute_command("OBJECT", "ENCODING", ledger.keys("row", id=lease.id))

    assert form in (b"listpack", "listpack")


TWICE = """-- ARGV id text  the job
-- ARGV first text  what is put first
local job = load(id)
put_or_drop_blob(job, 'cursor', string.rep('a', 200))
put_or_drop_blob(job, 'cursor', first)
put_or_drop_blob(job, 'cursor', string.rep('b', 300))
save(job)
return get_blob(load(id), 'cursor')"""


@pytest.mark.parametrize("first", ["", "b", "b" * 100, "b" * 600])
def test_of_a_field_that_is_put_more_than_once_in_an_operation_the_last_word_counts(
    ledger: Ledger, first: str
) -> None:
    job = ledger.enqueue(NewJob("report"))
    twice = Scripts(ledger.scripts.redis, library=Library({"twice": TWICE}, sources()[1]))

    found = twice.run(Call("twice", ledger.keys.home, {"id": job.id, "first": first}, bytes))

    assert found == b"b" * 300


def test_microseconds_keep_all_their_digits(ledger: Ledger, at: At) -> None:
    now = 1_790_000_000_123
    lease = running(at(now))

    assert lease.fence // 1000 == now
    assert view(ledger, lease).fence == lease.fence


# -- one slot ---------------------------------------------------------------------------------------------------------


def test_a_script_that_touches_two_slots_fails_on_a_cluster(
    tenure_server: Server, tenure_namespace: str
) -> None:
    """This is what makes the cluster leg of the suite worth running."""
    if tenure_server.kind != "cluster":
        pytest.skip("only a server in cluster mode looks at slots")
    body = "redis.call('GET', KEYS[1])\nredis.call('GET', 'elsewhere')"
    scripts = Scripts(tenure_server.redis, library=Library({"stray": body}, {"base": BARE}))

    with pytest.raises((StoreError, ResponseError), match=r"slot|non local key"):
        scripts.run(Call("stray", f"{tenure_namespace}:{{acme}}:meta", {}, str))


BARE = "local function run(body, KEYS, ARGV) return body(KEYS, ARGV) end"


# -- names ------------------------------------------------------------------------------------------------------------


def test_what_one_shared_file_uses_alone_stays_in_it() -> None:
    """Lua has room for 200 names in one place, and all files are one place to it."""
    shared = {
        "first": "local seen\nlocal function helper() return 1 end\nlocal function shown() return helper() end",
        "second": "local MANY = 2\nlocal ONE, TWO = 1, 2 -- both\nlocal function more() return MANY + shown() end",
    }

    text = joined(shared, ["seen = more() + TWO"])

    assert text.splitlines() == [
        "local seen, shown",
        "do",
        "",
        "local function helper() return 1 end",
        "function shown() return helper() end",
        "end",
        "local ONE, TWO, more",
        "do",
        "local MANY = 2",
        "ONE, TWO = 1, 2 -- both",
        "function more() return MANY + shown() end",
        "end",
    ]


def test_the_library_has_room_for_more_names() -> None:
    shared = joined(sources()[1], sources()[0].values())
    shown = re.findall(r"^local (.*)\ndo$", shared, re.MULTILINE)

    assert sum(len(names.split(",")) for names in shown) < 180
