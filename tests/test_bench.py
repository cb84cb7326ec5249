"""The benches' own arithmetic, on samples too small to measure anything."""

from __future__ import annotations

import pytest

from bench import queries


def test_every_page_of_the_queries_bench_holds_what_it_should(capsys: pytest.CaptureFixture[str]) -> None:
    assert queries.main(finished=300, dead=100, pending=40, times=1)

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 19
    assert "WRONG" not in "".join(lines)
