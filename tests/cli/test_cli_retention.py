"""`tenure tenants retention`: how long the jobs of a tenant stay."""

from __future__ import annotations

from .terminal import Cli


def test_how_long_jobs_stay_is_shown_and_changed(cli: Cli) -> None:
    options = ("--keep", "dead=90d,5000", "--keep", "succeeded=7d", "--keep", "canceled=forever")

    changed = cli("tenants", "retention", "acme", *options, "-o", "json").json

    assert changed["dead"] == {"afterMs": 90 * 86_400_000, "most": 5_000}
    assert changed["succeeded"] == {"afterMs": 7 * 86_400_000, "most": 100_000}
    assert changed["canceled"] == {"afterMs": None, "most": None}
    shown = [line.split() for line in cli("tenants", "retention", "acme").out.splitlines()]
    assert ["dead", "90d00h", "5,000"] in shown
    assert ["canceled", "forever", "any", "number"] in shown
    assert (
        cli("tenants", "retention", "acme", "--keep", "dead=default", "-o", "json").json["dead"]["most"]
        is None
    )


def test_what_breaks_a_rule_is_a_users_mistake(cli: Cli) -> None:
    for keep in ("dead", "dead=", "dead=soon", "dead=1d,x", "running=1d", "dead=0s"):
        said = cli("tenants", "retention", "acme", "--keep", keep)
        assert (said.code, "Traceback" in said.err) == (2, False), keep
