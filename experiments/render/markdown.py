"""Markdown tables and the numbers in them."""

import math
from collections.abc import Sequence

import polars as pl


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose first column is aligned left and whose other columns are aligned right."""
    lines = [header, [":--", *("--:" for _ in header[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(x: float | None, digits: int = 3) -> str:
    """``4.75e-1`` as the paper prints numbers; a dash for what is missing."""
    if x is None or math.isnan(x):
        return "-"
    if x == 0 or math.isinf(x):
        return f"{x:.0f}"
    mantissa, exponent = f"{x:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def origin(rows: pl.DataFrame) -> str:
    """One paragraph about where the rows come from."""
    first = rows.row(0, named=True)
    dtypes, seeds = (", ".join(str(x) for x in rows[name].unique().sort()) for name in ("dtype", "seed"))
    return (
        f"Revision `{first['revision']}`, started {first['started']}, {first['wall_s']:.0f} s of wall time. "
        f"Python {first['python']}, {first['versions']}. Device: {first['device']}; threads: {first['threads']}. "
        f"Data type {dtypes}, seed {seeds}."
    )
