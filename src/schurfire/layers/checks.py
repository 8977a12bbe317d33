"""Checks of arguments, and discs as plain numbers."""

import keras
import numpy as np

from schurfire.errors import invalid
from schurfire.namespaces import Array, keras_namespace
from schurfire.regions import Disc


def size(value: object, name: str) -> int:
    """``value`` if it is a positive whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise invalid(name, "a positive whole number", repr(value))
    return int(value)


def disc(region: object) -> Disc:
    """``region`` if it is a disc."""
    if not isinstance(region, Disc):
        raise invalid("region", "a schurfire.Disc", repr(region), "These are models in discrete time.")
    return region


def disc_config(region: Disc) -> dict[str, float]:
    """The disc as plain numbers: ``Disc(**disc_config(region)) == region``."""
    return {"radius": region.radius, "centre": region.centre}


def square_weight(w: Array, name: str) -> Array:
    """``w`` as a tensor; an error that names the constraint or regulariser if it is not square."""
    shape = tuple(w.shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise invalid(f"the weight of {name}", "square, of shape (..., n, n)", f"shape {shape}")
    return keras_namespace().convert_to_tensor(w)


def require_precision(layer: keras.layers.Layer) -> None:
    """An error if the layer does not compute in float32 or float64."""
    if layer.compute_dtype not in ("float32", "float64") or layer.compute_dtype != layer.variable_dtype:
        fix = "Half precision has no room for a proof of stability."
        raise invalid("dtype", "float32 or float64", repr(layer.dtype_policy.name), fix)


def require_float64_if_asked(layer: keras.layers.Layer) -> None:
    """An error if the layer is to compute in float64 and JAX would silently take float32."""
    if layer.variable_dtype == "float64" and keras.backend.backend() == "jax":
        import jax

        if jax.dtypes.canonicalize_dtype("float64") != np.float64:
            fix = "Call jax.config.update('jax_enable_x64', True) first, or use float32."
            raise invalid("dtype", "float32 where JAX has no float64", "'float64'", fix)
