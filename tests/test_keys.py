"""Key names: each reads back to what it was made of, and no text of a client can move a key to another slot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.crc import key_slot

from tenure.scripts.errors import BadInput
from tenure.scripts.keys import (
    INDEX_KEYS,
    TENANT_KEYS,
    Index,
    Key,
    Keys,
    check_namespace,
    check_tenant,
    parse,
)

TENANTS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True)
NAMESPACES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,10}", fullmatch=True)
CLIENT_TEXT = st.text(min_size=1, max_size=40).filter(lambda text: text.isprintable())
NARROW = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True)


def parts(key: Key, draw: Any) -> dict[str, str]:
    """Only the last part of a name may be a client's text; those before it come from a narrow alphabet."""
    return {name: draw(CLIENT_TEXT if name == key.parts[-1] else NARROW) for name in key.parts}


@given(st.data(), NAMESPACES, TENANTS, st.sampled_from(TENANT_KEYS))
def test_a_key_reads_back_to_what_it_was_made_of(
    data: st.DataObject, namespace: str, tenant: str, key: Key
) -> None:
    made_of = parts(key, data.draw)

    name = Keys(namespace, tenant)(key.name, **made_of)

    assert parse(name) == (namespace, tenant, key.name, made_of)


@given(st.data(), NAMESPACES, st.sampled_from(INDEX_KEYS))
def test_a_key_of_the_index_reads_back_too(data: st.DataObject, namespace: str, key: Key) -> None:
    made_of = parts(key, data.draw)

    assert parse(Index(namespace)(key.name, **made_of)) == (namespace, "@", key.name, made_of)


@given(st.data(), TENANTS, st.sampled_from(TENANT_KEYS))
def test_all_keys_of_a_tenant_are_in_one_slot(data: st.DataObject, tenant: str, key: Key) -> None:
    keys = Keys("tn", tenant)

    name = keys(key.name, **parts(key, data.draw))

    assert key_slot(name.encode()) == key_slot(keys.home.encode())


@pytest.mark.parametrize(
    "tenant",
    [
        "",
        "-acme",
        "Acme",
        "a" * 64,
        "a b",
        "a}",
        "{a}",
        "a:b",
        "a*",
        "a\n",
        "a\0",
        "@",
        "ä",
        "\u0430",
        None,
        7,
    ],
)
def test_what_is_no_slug_is_no_tenant(tenant: Any) -> None:
    with pytest.raises(BadInput, match="not a slug"):
        check_tenant(tenant)


@pytest.mark.parametrize("tenant", ["a", "7", "acme", "team-7", "a" * 63])
def test_a_slug_is_a_tenant(tenant: str) -> None:
    assert check_tenant(tenant) == tenant


@pytest.mark.parametrize("namespace", ["", "{a}", "a:b", "a b", "A", "_a", "a" * 64])
def test_a_namespace_cannot_move_a_key_to_another_slot(namespace: str) -> None:
    with pytest.raises(BadInput, match="namespace"):
        check_namespace(namespace)


@pytest.mark.parametrize(
    "name", ["", "tn", "tn:acme:meta", "tn:{acme}:odd", "tn:{acme}:j:", "tn:{@}:meta:x", "rq:queues"]
)
def test_a_name_that_is_not_ours_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="not one of Tenure's"):
        parse(name)


def test_every_key_says_what_it_holds_and_when_it_goes() -> None:
    families = TENANT_KEYS + INDEX_KEYS

    assert all(
        key.holds and key.gone and key.type in ("hash", "string", "list", "set", "zset") for key in families
    )
    assert len({key.name for key in families}) == len(families)
