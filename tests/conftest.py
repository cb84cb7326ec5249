"""What all tests share. Most fixtures are those of `tenure.testing`, which users have too."""

from __future__ import annotations

import pytest

from tenure.testing import Server

from .given import Store


@pytest.fixture
def store(tenure_server: Server, tenure_namespace: str) -> Store:
    """All that the test's namespace holds: `with store.unchanged(): ...`."""
    return Store(tenure_server.redis, tenure_namespace)
