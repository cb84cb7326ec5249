"""Zones: the stretches of constant offset, and what an unknown name is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import pytest

from tenure.scheduler import zones
from tenure.scheduler.cron import CronExpression
from tenure.scripts.errors import BadInput, MissingExtra


def stretch_at(zone: zones.Zone, instant: int) -> zones.Stretch:
    return next(it for it in zone.span(instant >> zones.SPAN_BITS) if instant < it.end)


def test_stretches_equal_the_tz_database_at_random_instants_and_at_their_edges() -> None:
    random = Random(11)
    for name in sorted(available_timezones() - {"localtime", "posixrules"}):
        zone, tz = zones.zone(name), ZoneInfo(name)

        def offset(instant: int, tz: ZoneInfo = tz) -> int:
            seen = (zones.EPOCH + timedelta(seconds=instant)).astimezone(tz).utcoffset()
            assert seen is not None
            return int(seen.total_seconds())

        for _ in range(3):
            instant = random.randint(0, 2_500_000_000)
            it = stretch_at(zone, instant)
            assert it.start <= instant < it.end
            assert it.offset == offset(instant) == offset(it.start) == offset(it.end - 1), name
            assert (it.before, it.after) == (offset(it.start - 1), offset(it.end)), name


def test_stretches_follow_each_other_without_a_hole() -> None:
    zone = zones.zone("Africa/Casablanca")
    at = 1_500_000_000
    while at < 1_700_000_000:
        it, following = stretch_at(zone, at), stretch_at(zone, stretch_at(zone, at).end)
        assert following.start == it.end
        assert (following.before, it.after) == (it.offset, following.offset)
        at = it.end


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin ", "Europe/Berlin"),
        ("America/NewYork", "America/New_York"),
        ("Shanghai", "Asia/Shanghai"),
        ("Asia/Kalkuta", "Asia/Kolkata"),
    ],
)
def test_an_unknown_zone_is_told_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(BadInput, match="did you mean") as refusal:
        CronExpression("@daily", name)

    assert repr(name) in str(refusal.value)
    assert repr(nearest) in str(refusal.value) or nearest == "Asia/Kolkata"


@pytest.mark.parametrize(
    "name", ["", "../etc/passwd", "/etc/passwd", "America", "x" * 70_000, "Mars\0", "localtime"]
)
def test_a_strange_zone_name_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is unknown") as refusal:
        CronExpression("@daily", name)

    assert len(str(refusal.value)) < 200


def test_without_a_tz_database_the_extra_is_named_and_utc_still_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_zone(name: str) -> ZoneInfo:
        raise ZoneInfoNotFoundError(name)  # what zoneinfo raises when no database is found

    monkeypatch.setattr(zones, "ZoneInfo", no_zone)
    monkeypatch.setattr(zones, "_known_names", dict[str, str])

    with pytest.raises(MissingExtra, match="no tz database") as refusal:
        zones.Zone("Europe/Berlin")

    assert "pip install '.[tzdata]'" in refusal.value.hint
    assert zones.Zone("UTC").tz is UTC
    assert CronExpression("@daily").next(datetime(2026, 5, 1, tzinfo=UTC)) is not None
