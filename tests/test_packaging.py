"""What an installed Tenure is: light to import, whole, and imported once under one name."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tenure

ROOT = Path(__file__).parent.parent
SOURCES = [
    path
    for name in ("tenure", "scripts", "lease", "scheduler", "workers", "api")
    for path in [ROOT / name, *(ROOT / name).glob("*/")]
    if not path.is_symlink()
]
LAYERS = ("scripts", "lease", "scheduler", "workers", "api")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def python(code: str, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return (done.stdout + done.stderr).strip()


def test_importing_tenure_opens_nothing_and_loads_almost_nothing() -> None:
    code = """
import os, sys
before, files = set(sys.modules), set(os.listdir("/proc/self/fd")) if os.path.exists("/proc") else set()
import tenure
after = set(os.listdir("/proc/self/fd")) if files else set()
loaded = {name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names
print(len(after - files), *loaded)
"""
    assert python(code) == "0 tenure"


def test_importing_tenure_loads_none_of_what_it_stands_on() -> None:
    """So it stays quick: the time itself is for the bench, not for a busy machine's test."""
    code = "import sys, tenure; print([name for name in ('redis', 'rq', 'starlette', 'click') if name in sys.modules])"

    assert python(code) == "[]"


def test_every_public_name_is_there() -> None:
    assert all(getattr(tenure, name) for name in tenure.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        tenure.nonsense  # noqa: B018


def test_every_module_has_one_name() -> None:
    """The layers lie in the root folder and are found as tenure.lease and so on: never as `lease` beside that."""
    assert not [name for name in sys.modules if name.split(".")[0] in LAYERS]


def test_the_layers_are_found_inside_the_package() -> None:
    for layer in LAYERS:
        assert (ROOT / "tenure" / layer).is_symlink()
        assert (ROOT / "tenure" / layer).resolve() == ROOT / layer


def test_every_package_and_every_script_is_in_the_wheel() -> None:
    declared = PROJECT["tool"]["setuptools"]
    folders = {path.parent.relative_to(ROOT) for path in ROOT.glob("tenure/*/__init__.py")}
    names = {".".join(folder.parts) for folder in folders} | {"tenure"}
    patterns = declared["package-data"]["tenure.scripts"]
    packed = {path for pattern in patterns for path in (ROOT / "scripts").glob(pattern)}

    assert set(declared["packages"]) == names
    assert packed == set((ROOT / "scripts").rglob("*.lua"))
    assert declared["package-data"]["tenure"] == ["py.typed"]


def test_extras_are_named_as_they_are_installed_today() -> None:
    """From a clone, since no index has Tenure; and each that is named is there."""
    texts = [
        path.read_text()
        for name in ("*.py", "*.md")
        for folder in (ROOT, *SOURCES)
        for path in folder.glob(name)
    ]
    said = "\n".join(texts)
    named = {
        extra
        for found in re.findall(r"install '\.\[([^{\]]+)\]'|\binstall\(['\"]([a-z-]+)", said)
        for extra in found
    }
    extras = {one for each in named if each for one in each.split(",")}

    assert extras >= {
        "archive",
        "demo",
        "embedded",
        "rq-scheduler",
        "serve",
        "sqlalchemy",
        "testing",
        "tzdata",
    }
    assert extras <= set(PROJECT["project"]["optional-dependencies"])
    assert not re.findall(r"install .{0,12}tenure\[", said)


def test_layers_import_downwards_only() -> None:
    """scheduler and workers are strangers to each other: they meet in the ledger."""
    above = {
        "scripts": ("lease", "scheduler", "workers", "api", "app"),
        "lease": ("scheduler", "workers", "api", "app"),
        "scheduler": ("workers", "api", "app"),
        "workers": ("scheduler", "api", "app"),
        "api": ("app", "cli"),
    }
    upward = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for layer, forbidden in above.items()
        for path in (ROOT / layer).rglob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        for name in forbidden
        if line.strip().startswith((f"from ..{name}", f"from tenure.{name}", f"import tenure.{name}"))
    ]

    assert upward == []
