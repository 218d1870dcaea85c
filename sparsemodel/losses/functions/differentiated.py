"""Value, gradient and Hessian product of a function written with JAX, in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sparsemodel.designs.remote.foreign import double_precision
from sparsemodel.interfaces import DataTypeError, FloatArray, MissingDependencyError, ModelError
from sparsemodel.loading import uninterrupted

Function = Callable[..., Any]


def differentiated(value: Function, name: str) -> tuple[Function, Function, Function]:
    """Return ``u -> f(u)``, ``u -> grad f(u)`` and ``(u, v) -> H(u) v`` of a JAX function.

    All three are compiled by JAX and computed in double precision, whatever JAX's own setting:
    it is switched for the calls alone. The Hessian is never formed: its product with ``v`` is the
    forward derivative of the gradient along ``v``, at the cost of a few evaluations of ``f``.

    Raises
    ------
    MissingDependencyError
        When JAX is not installed.
    DataTypeError
        At the first call, when the function is not one that JAX can differentiate.
    ModelError
        At the first call, when it computes in single precision, or holds data rounded to it.
    """
    try:
        with uninterrupted():
            import jax
    except ImportError as error:
        raise MissingDependencyError(
            f"{name} has no gradient. Pass one, or install JAX (pip install jax) "
            "and write the value with jax.numpy: the gradient is derived then."
        ) from error

    slope = jax.grad(lambda u: jax.numpy.reshape(value(u), ()))
    inspected: set[tuple[int, ...]] = set()

    def in_double(function: Function) -> Function:
        compiled = jax.jit(function)

        def call(*arrays: FloatArray) -> FloatArray:
            with double_precision(jax):
                shape = arrays[0].shape
                if shape not in inspected:
                    _inspect(jax, value, shape, name)
                    inspected.add(shape)
                return np.asarray(compiled(*arrays), dtype=np.float64)

        return call

    def product(u: Any, v: Any) -> Any:
        return jax.jvp(slope, (u,), (v,))[1]

    return in_double(value), in_double(slope), in_double(product)


def _inspect(jax: Any, value: Function, shape: tuple[int, ...], name: str) -> None:
    """Trace ``value`` once and refuse what would be differentiated wrongly or not at all."""
    try:
        traced = jax.make_jaxpr(value)(np.zeros(shape))
    except jax.errors.JAXTypeError as error:  # NumPy in place of jax.numpy, an `if` on a value
        raise DataTypeError(
            f"{name} has no gradient, and JAX cannot differentiate the value: {_first(error)} "
            "Write it with jax.numpy in place of numpy, or pass gradient=."
        ) from error
    except (TypeError, AttributeError) as error:
        raise DataTypeError(
            f"{name} has no gradient, and the value could not be traced by JAX: {_first(error)} "
            "It must be a function of one array, written with jax.numpy; or pass gradient=."
        ) from error
    sizes = [int(np.prod(out.shape)) for out in traced.out_avals]
    if sizes != [1]:
        shapes = ", ".join(str(tuple(out.shape)) for out in traced.out_avals)
        raise DataTypeError(f"{name}: the value must be one number, not of shape {shapes}.")
    held = any(isinstance(held, jax.Array) and _is_single(held) for held in traced.consts)
    if held or any(_is_single(v.aval) for v in _variables(traced.jaxpr)):
        raise ModelError(
            f"{name} computes in single precision: it holds JAX arrays of 32 bits (JAX's default) "
            "or casts to them, and optima found in it are not right to more than a few digits. "
            "Let it refer to NumPy arrays of doubles, which are used as they are, or call "
            'jax.config.update("jax_enable_x64", True) before making JAX arrays.'
        )


def _variables(jaxpr: Any) -> Iterator[Any]:
    """Yield every result within a traced function, and what its inner functions are given."""
    for equation in jaxpr.eqns:
        yield from equation.outvars
        for parameter in equation.params.values():
            for given in parameter if isinstance(parameter, (list, tuple)) else (parameter,):
                inner: Any = getattr(given, "jaxpr", given)
                if hasattr(inner, "eqns"):
                    yield from (*inner.constvars, *inner.invars)
                    yield from _variables(inner)


def _is_single(array: Any) -> bool:
    return str(getattr(array, "dtype", None)) in ("float32", "float16", "bfloat16")


def _first(error: Exception) -> str:
    """Return the first sentence of an error."""
    return str(error).strip().partition("\n")[0]
