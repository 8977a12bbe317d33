"""Products of small matrices, one pair for each model, as XLA compiles them best on CPU.

XLA's library multiplies the matrices of a stack one by one, at 0.4 us each for n = 5, and a stack made by ``vmap``
looks like a single pair while it is traced. Written as multiply-and-adds the product is element-wise along the stack
and becomes one loop over its SIMD lanes; so do its derivatives, which are products of the same kind.
"""

import functools
from collections.abc import Callable

from schurfire.namespaces import Array, is_jax, namespace

_LONGEST = 10  # inner axis that is written out; the library's call costs less from there on


def product(X: Array, Y: Array) -> Array:
    """``X Y`` for matrices (..., i, k) and (..., k, j) with the same leading axes.

    On JAX first derivatives in reverse mode only.
    """
    if is_jax(X) and X.shape[-1] <= _LONGEST and X.shape[:-2] == Y.shape[:-2]:
        return _written_out()(X, Y)
    return namespace(X, Y).matmul(X, Y)


@functools.cache
def _written_out() -> Callable[[Array, Array], Array]:
    import jax
    import jax.numpy as jnp

    def multiply(X: Array, Y: Array) -> Array:
        if X.shape[-1] > _LONGEST:
            return jnp.matmul(X, Y, precision="highest")
        terms = [X[..., :, k, None] * Y[..., k, None, :] for k in range(X.shape[-1])]
        return sum(terms[1:], start=terms[0])

    def transposed(X: Array) -> Array:
        return jnp.swapaxes(X, -1, -2)

    rule = jax.custom_vjp(multiply)
    rule.defvjp(
        lambda X, Y: (multiply(X, Y), (X, Y)),
        lambda kept, bar: (multiply(bar, transposed(kept[1])), multiply(transposed(kept[0]), bar)),
    )
    return rule
