"""``schurfire certify``: the verdict on a matrix or a Schur pair."""

from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schurfire.cli.options import NO_REGION, Flag, RegionOptions
from schurfire.cli.terminal import show, show_json, show_verdict

if TYPE_CHECKING:
    from schurfire.regions import Region
    from schurfire.stability.certificate import Certificate

EXAMPLES = """Examples:

    schurfire certify A.npy
    schurfire certify A.csv --radius 0.95
    schurfire certify plant.mat --variable A --half-plane 0
    schurfire certify pair.npz --blocks
"""

_SMALL, _LARGE = Fraction(1, 10**300), Fraction(10**300)


def command(
    matrix: Path,
    /,
    *,
    where: RegionOptions = NO_REGION,
    blocks: Flag = False,
    variable: str | None = None,
    json: Flag = False,
) -> int:
    """Prove that all eigenvalues of a matrix lie inside the region.

    The exit status is 0 if they are proven to, 1 if not.

    Args:
        matrix: A matrix as .npy, .csv or .mat, or a Schur pair as .npz.
        where: The region.
        blocks: Show the diagonal blocks that decide, each with its two inequalities, to be checked by hand.
        variable: The variable of a .mat file that holds several.
        json: Write one JSON object instead of text.
    """
    import schurfire as sf
    from schurfire.storage.matrices import PAIR_SUFFIXES, read_matrix, read_pair, region_as_dict

    if matrix.suffix.lower() in PAIR_SUFFIXES and variable is None:
        x = read_pair(matrix)
    else:
        x = read_matrix(matrix, variable)
    certificate = sf.certify(x, where.region())
    if json:
        content = {
            "matrix": str(matrix),
            "n": certificate.n,
            "dtype": certificate.dtype,
            "region": region_as_dict(certificate.region),
            "certificate": certificate_as_dict(certificate),
        }
        show_json(content | ({"blocks": _blocks_as_dicts(certificate)} if blocks else {}))
    else:
        show_verdict(certificate)
        if blocks:
            _show_blocks(certificate)
    return 0 if certificate.is_stable else 1


def certificate_as_dict(certificate: "Certificate") -> dict[str, Any]:
    """What a certificate says, for JSON."""
    return {
        "is_stable": certificate.is_stable,
        "method": certificate.method,
        "margin": certificate.margin,
        "text": str(certificate),
    }


def _show_blocks(certificate: "Certificate") -> None:
    if certificate.method != "blocks":
        show("This matrix is not quasi-triangular: no block decides alone. The Schur pair has blocks: --form schur.")
        return
    region = certificate.region
    show()
    show(f"X = [a, b] [c, d] is {_named(region)}.  tr X = a + d,  det X = a d - b c.  A block of one number is x.")
    show("Values after the last = are exact differences, rounded to 6 digits.")
    for number, block in enumerate(certificate.blocks, 1):
        rows = block.tolist()
        show()
        show((f"{f'block {number}':<12}", "bold"), "  ".join(f"[{', '.join(map(repr, row))}]" for row in rows))
        if len(rows) == 2:
            trace, determinant = _trace_and_determinant(rows, region)
            show(f"  tr X = {_digits(trace)},  det X = {_digits(determinant)}")
        for formula, numbers, value in _inequalities(rows, region):
            sign = ("> 0", "green") if value > 0 else ("not > 0", "bold red")
            show(f"  {formula} = {numbers} = {_rounded(value)} ", sign)


def _named(region: "Region") -> str:
    origin = _origin(region)
    return f"the block minus {origin!r} times the identity" if origin else "the block"


def _blocks_as_dicts(certificate: "Certificate") -> list[dict[str, Any]]:
    return [
        {
            "block": block.tolist(),
            "inequalities": [
                {"expression": formula, "numbers": numbers, "value": _rounded(value), "positive": value > 0}
                for formula, numbers, value in _inequalities(block.tolist(), certificate.region)
            ],
        }
        for block in certificate.blocks
    ]


def _inequalities(block: list[list[float]], region: "Region") -> Iterator[tuple[str, str, Fraction]]:
    """Each inequality as formula, with numbers put in, and its exact left-hand side."""
    from schurfire.exact import slacks
    from schurfire.regions import HalfPlane

    first, second = slacks(block, region)
    if len(block) == 1:
        x = _digits(Fraction(block[0][0]) - Fraction(_origin(region)))
        if isinstance(region, HalfPlane):
            yield "-x", f"-({x})", first
        else:
            yield "r - x", f"{region.radius!r} - ({x})", first
            yield "r + x", f"{region.radius!r} + ({x})", second
        return
    trace, determinant = _trace_and_determinant(block, region)
    if isinstance(region, HalfPlane):
        yield "-tr X", f"-({_digits(trace)})", first
        yield "det X", _digits(determinant), second
        return
    r = Fraction(region.radius)
    square, product = _digits(r * r), _digits(r * abs(trace))
    yield "r^2 - det X", f"{square} - ({_digits(determinant)})", first
    yield "r^2 + det X - r |tr X|", f"{square} + ({_digits(determinant)}) - {product}", second


def _trace_and_determinant(block: list[list[float]], region: "Region") -> tuple[Fraction, Fraction]:
    """Those of the 2x2 block minus the region's centre or bound times the identity; exact."""
    (a, b), (c, d) = ([Fraction(entry) for entry in row] for row in block)
    a, d = a - Fraction(_origin(region)), d - Fraction(_origin(region))
    return a + d, a * d - b * c


def _digits(x: Fraction) -> str:
    """The shortest decimal digits of the float nearest to x, or 17 digits where no float is near."""
    return repr(float(x)) if not x or _SMALL < abs(x) < _LARGE else _rounded(x, 17)


def _rounded(x: Fraction, digits: int = 6) -> str:
    return f"{Context(prec=digits).divide(Decimal(x.numerator), Decimal(x.denominator)).normalize():g}"


def _origin(region: "Region") -> float:

    return region.origin
