"""The native recurrence under PyTorch's autograd; skipped unless Keras' backend is PyTorch (`make test-torch`)."""

import numpy as np
import pytest

from schurfire.kernels.forms import FORMS
from schurfire.kernels.recurrence import state_space_response
from schurfire.namespaces import keras_namespace
from schurfire.native import library

torch = pytest.importorskip("torch")
if keras_namespace().backend != "torch":
    pytest.skip("Keras' backend is not PyTorch", allow_module_level=True)

needs_library = pytest.mark.skipif(not library.is_available(), reason="the native recurrence is not installed")

NAMES = ("A", "B", "C", "D", "u", "x0")
ABSENT = ((), ("x0",), ("D",), ("B",), ("C", "D"), ("B", "C", "D"), ("B", "C", "D", "x0"), ("B", "D"))


def example(absent=(), models: int = 2, sequences: int = 3, is_shared: bool = False) -> list:
    """A, B, C, D, u, x0 in float64; None for those that are absent."""
    n, steps = 3, 9
    m, p = n if "B" in absent else 2, n if "C" in absent else 4
    R, S, generator = models, sequences, torch.Generator().manual_seed(0)
    inputs = (S, steps, m) if is_shared else (R, S, steps, m)
    shapes = ((R, 1, n, n), (R, 1, n, m), (R, 1, p, n), (R, 1, p, m), inputs, (R, S, n))
    tensors = [0.4 * torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [None if name in absent else x.requires_grad_() for name, x in zip(NAMES, tensors, strict=True)]


def function_of_given(arguments: list, form: str = "dense"):
    """The native response as a function of the arguments that are not None, and these."""
    given = [x for x in arguments if x is not None]

    def response(*tensors):
        remaining = iter(tensors)
        return tuple(
            state_space_response(*(None if x is None else next(remaining) for x in arguments), "native", form=form)
        )

    return response, given


@needs_library
@pytest.mark.parametrize("absent", ABSENT)
@pytest.mark.parametrize("form", FORMS)
def test_gradients_against_differences(form, absent):
    response, given = function_of_given(example(absent), form)
    assert torch.autograd.gradcheck(response, given)


@needs_library
def test_gradients_of_an_input_that_the_models_share():
    response, given = function_of_given(example(is_shared=True))
    assert torch.autograd.gradcheck(response, given)


@needs_library
@pytest.mark.parametrize("part", [0, 1])
def test_a_result_that_is_not_used(part):
    response, given = function_of_given(example())
    assert torch.autograd.gradcheck(lambda *tensors: response(*tensors)[part], given)


@needs_library
@pytest.mark.parametrize("name", NAMES)
def test_only_what_needs_a_gradient_gets_one(name):
    arguments = [x.detach() for x in example()]
    arguments[NAMES.index(name)].requires_grad_()
    response, given = function_of_given(arguments)
    sum(x.square().sum() for x in response(*given)).backward()
    everything = example()
    response, given = function_of_given(everything)
    sum(x.square().sum() for x in response(*given)).backward()
    for x, y, this in zip(arguments, everything, NAMES, strict=True):
        assert (x.grad is not None) == (this == name)
        if this == name:
            torch.testing.assert_close(x.grad, y.grad, rtol=1e-13, atol=1e-13)


@needs_library
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("models", "sequences"), [(1, 1), (1, 20), (20, 1)])
def test_the_same_numbers_as_with_numpy(models, sequences, dtype):
    tensors = [x.detach().to(dtype) for x in example((), models, sequences)]
    found = state_space_response(*tensors, "native")
    expected = state_space_response(*(x.numpy() for x in tensors), "native")
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == dtype
        np.testing.assert_array_equal(a.numpy(), b)


@needs_library
def test_tensors_of_any_strides():
    A, B, C, D, u, x0 = (x.detach() for x in example())
    expected = state_space_response(A, B, C, D, u, x0, "native")
    moved = u.transpose(-1, -2).contiguous().transpose(-1, -2)
    turned = A.transpose(-1, -2).contiguous().transpose(-1, -2)
    found = state_space_response(turned, B, C, D, moved, x0.expand(2, 3, 3), "native")
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-13)


@needs_library
def test_a_second_derivative_is_refused():
    response, given = function_of_given(example())
    slope = torch.autograd.grad(response(*given)[0].square().sum(), given[0], create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()
