"""A real browser for tests: Playwright's own Chromium if it was installed, else the system's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_browser() -> tuple[Any, str] | None:
    """Playwright and a browser's path; None where there is one of them or none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    found = own if Path(own).exists() else next(filter(None, map(shutil.which, NAMES)), None)
    return (sync_playwright, found) if found else None


@contextmanager
def browser(found: tuple[Any, str]) -> Iterator[Any]:
    start, path = found
    with start() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()
