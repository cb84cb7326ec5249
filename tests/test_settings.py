"""Settings: where they come from, what is refused, and that no password is ever shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenure.scripts.errors import BadInput
from tenure.settings import Settings, safe_url

HOME = {"HOME": "/home/ann"}


def test_without_any_setting_the_embedded_server_lives_under_home(tmp_path: Path) -> None:
    settings = Settings.load(HOME, tmp_path)

    assert settings.redis_url is None
    assert settings.data == Path("/home/ann/.local/share/tenure")
    assert (settings.namespace, settings.lease_ms, settings.renew_ms, settings.poll_ms) == (
        "tn",
        60_000,
        15_000,
        2_000,
    )


def test_the_xdg_folder_goes_before_home(tmp_path: Path) -> None:
    assert Settings.load({**HOME, "XDG_DATA_HOME": "/data"}, tmp_path).data == Path("/data/tenure")
    assert Settings.load({**HOME, "XDG_DATA_HOME": "data"}, tmp_path).data == Path(
        "/home/ann/.local/share/tenure"
    )


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "tenure.toml").write_text(
        'namespace = "file"\nlease_ms = 30000\ndata = "~/d"\napp = "shop:app"\n'
    )

    settings = Settings.load({**HOME, "TENURE_NAMESPACE": "env", "TENURE_RENEW_MS": "5000"}, tmp_path)

    assert (settings.namespace, settings.lease_ms, settings.renew_ms) == ("env", 30_000, 5_000)
    assert (settings.data, settings.app) == (Path("/home/ann/d"), "shop:app")


def test_a_relative_folder_is_meant_from_the_working_folder(tmp_path: Path) -> None:
    assert Settings.load({"TENURE_DATA": "data"}, tmp_path).data == tmp_path / "data"


def test_a_url_needs_no_home(tmp_path: Path) -> None:
    assert Settings.load({"TENURE_REDIS_URL": "unix:///run/redis.sock"}, tmp_path).data is None


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({}, "HOME"),
        ({**HOME, "TENURE_REDIS_URL": "http://localhost"}, "redis://host:port"),
        ({**HOME, "TENURE_REDIS_URL": "redis://localhost:port/0"}, "redis://host:port"),
        ({**HOME, "TENURE_REDIS_URL": "redis://localhost/zero"}, "redis://host:port"),
        ({**HOME, "TENURE_REDIS_URL": "redis://"}, "redis://host:port"),
        ({**HOME, "TENURE_REDIS_URL": "unix://"}, "unix:///path"),
        ({**HOME, "TENURE_RQ_URL": "localhost:6379"}, "rq_url is 'localhost:6379': it must be redis://"),
        ({**HOME, "TENURE_ARCHIVE_URL": "archive.db"}, "archive_url is not a URL of a database"),
        ({**HOME, "TENURE_NAMESPACE": "Big"}, "namespace is 'Big'"),
        ({**HOME, "TENURE_NAMESPACE": "a{b}"}, "namespace"),
        ({**HOME, "TENURE_DURABILITY": "tape"}, "memory, process, disk"),
        ({**HOME, "TENURE_APP": "shop"}, "app is 'shop'"),
        ({**HOME, "TENURE_LEASE_MS": "60s"}, "whole number of milliseconds"),
        ({**HOME, "TENURE_POLL_MS": "0"}, "at least 1"),
        ({**HOME, "TENURE_RENEW_MS": "30000"}, "less than half of lease_ms"),
        ({**HOME, "TENURE_REDIS_ULR": "redis://localhost"}, "TENURE_REDIS_ULR"),
        ({"TENURE_DATA": "~/data"}, "HOME is not set"),
        ({**HOME, "TENURE_REDIS_URL": ""}, "TENURE_REDIS_URL, in the environment, is set but empty"),
        ({**HOME, "TENURE_NAMESPACE": ""}, "TENURE_NAMESPACE, in the environment, is set but empty"),
        ({**HOME, "TENURE_DURABILITY": ""}, "TENURE_DURABILITY, in the environment, is set but empty"),
    ],
)
def test_a_value_that_breaks_a_rule_is_refused(env: dict[str, str], says: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=says):
        Settings.load(env, tmp_path)


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ('redis_ulr = "redis://localhost"', "'redis_ulr'", "redis_url"),
        ("zebra = 1", "'zebra'", "namespace"),
        ("lease_ms = true", "whole number", ""),
        ("lease_ms = 1.5", "whole number", ""),
        ("namespace = 7", "must be text", ""),
        ("namespace = ", "cannot be read", "repair"),
        ('namespace = ""', "is set but empty", "give it a value"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused(text: str, says: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "tenure.toml").write_text(text)

    with pytest.raises(BadInput, match=says) as refused:
        Settings.load(HOME, tmp_path)

    assert hint in refused.value.hint


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"redis_url": 5}, "redis_url is int: it must be text or None"),
        ({"data": "/data"}, "data is '/data': it must be a Path"),
        ({"spool": "/spool"}, "spool is '/spool': it must be a Path"),
        ({"archive_url": 7}, "archive_url is int: it must be text or None"),
        ({"lease_ms": "60000"}, "lease_ms is '60000': it must be a whole number"),
        ({"poll_ms": True}, "poll_ms is True"),
        ({"durability": "tape"}, "memory, process, disk"),
        ({"namespace": None}, "namespace is None: it must be text"),
    ],
)
def test_a_setting_given_in_code_has_its_type(values: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        Settings(**{"redis_url": "redis://localhost", **values})


def test_a_spool_is_beside_the_data_unless_it_is_told_where(tmp_path: Path) -> None:
    url = {"TENURE_REDIS_URL": "redis://localhost"}

    assert Settings.load(HOME, tmp_path).spool_folder == Path("/home/ann/.local/share/tenure/spool")
    assert Settings.load({**HOME, "TENURE_SPOOL": "s"}, tmp_path).spool_folder == tmp_path / "s"
    assert Settings.load(url, tmp_path).spool_folder is None


def test_the_archives_password_is_not_shown(tmp_path: Path) -> None:
    url = "postgresql+psycopg://ann:s3cret@host/db?password=s3cret"
    shown = Settings.load({**HOME, "TENURE_ARCHIVE_URL": url}, tmp_path).shown()

    assert shown["archive_url"] == "postgresql+psycopg://***@host/db?password=***"


def test_other_variables_of_the_user_are_left_alone(tmp_path: Path) -> None:
    Settings.load({**HOME, "TENURE_BILLING_HOST": "x"}, tmp_path)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://ann:s3cret@host:1/0", "redis://***@host:1/0"),
        ("redis://:p@ss/w#rd@host/0", "redis://***@host/0"),
        ("unix:///run/r.sock?password=s3cret&db=1", "unix:///run/r.sock?password=***&db=1"),
    ],
)
def test_a_shown_url_has_no_password(url: str, shown: str) -> None:
    assert safe_url(url) == shown


def test_a_refused_url_has_no_password(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        Settings.load({"TENURE_REDIS_URL": "redis://:s3cret@host:many/0"}, tmp_path)

    assert "s3cret" not in str(refused.value)
