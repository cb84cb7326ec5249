"""What type checkers say of a user's own code: it is typed all the way, and mistakes are found before it runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

USER_CODE = Path(__file__).with_name("user_code.py")
ROOT = USER_CODE.parents[2]


def run(*command: str, cwd: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-m", *command], cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert said.returncode == 0, said.stdout + said.stderr


def needs(checker: str) -> None:
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")


def test_mypy_accepts_it_and_finds_each_mistake(tmp_path: Path) -> None:
    needs("mypy")

    run("mypy", "--strict", "--cache-dir", str(tmp_path), str(USER_CODE), cwd=ROOT)


def test_pyright_accepts_it_and_finds_each_mistake(tmp_path: Path) -> None:
    needs("pyright")
    shutil.copy(USER_CODE, tmp_path)
    config = {
        "include": [USER_CODE.name],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    tmp_path.joinpath("pyrightconfig.json").write_text(json.dumps(config))

    run("pyright", "--pythonpath", sys.executable, cwd=tmp_path)
