"""Where a row comes from: code, libraries and device."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("schurfire", "numpy", "scipy", "jax", "jaxlib", "keras")


def provenance() -> dict[str, str]:
    """Git revision, start, versions and device, as columns that every row of a run repeats."""
    return {
        "revision": _revision(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "versions": ", ".join(f"{name} {_version(name)}" for name in _PACKAGES),
        "device": f"{_processor()}, {os.cpu_count()} logical cores",
        "threads": next((os.environ[n] for n in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS") if n in os.environ), "all"),
    }


def _revision() -> str:
    """The commit, with a plus sign if there are changes on top of it, results apart."""
    folder = Path(__file__).parent
    try:
        commit = _git(folder, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(folder, "status", "--porcelain", "--", "..", ":!results") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
