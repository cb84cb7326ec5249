"""The stories are what a newcomer reads first, so their list has each of them, once, and none that is gone."""

from __future__ import annotations

import re
from pathlib import Path

STORIES = Path(__file__).parent / "stories"


def test_the_list_of_stories_has_them_all() -> None:
    listed = re.findall(r"^(\d+)\. `(test_\w+\.py)`: ", (STORIES / "README.md").read_text(), re.MULTILINE)

    assert sorted(name for _, name in listed) == sorted(path.name for path in STORIES.glob("test_*.py"))
    assert [int(number) for number, _ in listed] == list(range(1, len(listed) + 1))
