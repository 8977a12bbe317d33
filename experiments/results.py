"""A run's folder: ``rows.parquet``, ``table.md`` and the figures; every file is written whole or not at all."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

_ROWS = "rows.parquet"


def save_rows(rows: Sequence[dict[str, Any]], folder: Path) -> pl.DataFrame:
    """Writes the rows and returns them as they will be read."""
    frame = pl.DataFrame(rows, infer_schema_length=None)
    _write_whole(folder / _ROWS, frame.write_parquet)
    return frame


def load_rows(folder: Path) -> pl.DataFrame:
    """The rows of an earlier run."""
    return pl.read_parquet(folder / _ROWS)


def save_text(text: str, path: Path) -> None:
    _write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def save_figure(figure: Any, path: Path) -> None:
    """Writes a Matplotlib figure as PNG, without the date and version that would change the file at every run."""
    _write_whole(path, lambda part: figure.savefig(part, format="png", dpi=130, metadata={"Software": None}))


def _write_whole(path: Path, write: Callable[[Path], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        write(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
