"""A design over an array of another library, multiplied where it is: on a GPU, for example."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sparsemodel.designs.dense import DenseDesign, columns_again
from sparsemodel.interfaces import (
    Access,
    DataTypeError,
    Design,
    FloatArray,
    IntArray,
    MissingDependencyError,
)
from sparsemodel.interfaces.design import FAR_BLOCK_BYTES, rows_of_a_block
from sparsemodel.threads import cross_product

_COLUMN_BYTES, _COLUMNS = 2**29, 16
"""Columns of a support are brought over up to this size (512 MB of float64), and so many."""


@final
class ForeignDesign(Design):
    """A design over an array that speaks the array API: PyTorch, JAX, CuPy, ...

    A product sends one vector and brings one back; the matrix stays where it is. Gram matrices,
    norms of columns and the products behind bounds are computed there too, in float64. The
    columns of a support come over as float64 once, up to 16 of them and 512 MB; more are copied
    there.

    Parameters
    ----------
    array
        Two-dimensional, float32 or float64, on any device. It is kept by reference and never
        written to; gradients of it are not recorded.
    where
        What the user calls it, for error messages.

    Raises
    ------
    DataTypeError
        When its entries are neither float32 nor float64.
    MissingDependencyError
        Without ``array-api-compat``.

    Notes
    -----
    A device without float64 sums the products behind a bound here, over blocks of rows: single
    precision proves nothing. ``transfers`` counts the arrays that went over or came back.
    """

    def __init__(self, array: Any, where: str = "A") -> None:
        self._xp = xp = _compat(where).array_namespace(array)
        self._a = array.detach() if hasattr(array, "detach") else array
        kinds = {xp.float64: np.float64, xp.float32: np.float32}
        found = next((kind for dtype, kind in kinds.items() if array.dtype == dtype), None)
        if found is None:
            raise DataTypeError(
                f"{where} has dtype {array.dtype}, and arrays of {_library(array)} are "
                "multiplied in float32 or float64 where they are; convert it there first, with "
                "A.astype(jax.numpy.float32) or A.to(torch.float32), for example."
            )
        self._dtype: Any = np.dtype(found)
        self._jax: bool = _compat(where).is_jax_array(array)
        _check_plain(array, where, traced=self._jax)
        # JAX moves vectors to the matrix by itself, also to one that is spread over devices.
        self._device = None if self._jax else _compat(where).device(array)
        self._doubles = self._has_doubles()
        self.transfers = 0

    @property
    def shape(self) -> tuple[int, int]:
        n, p = self._a.shape
        return int(n), int(p)

    @property
    def access(self) -> Access:
        return Access.MEMORY | Access.DEVICE

    @property
    def nbytes(self) -> int | None:
        n, p = self.shape
        return n * p * int(self._dtype.itemsize)

    @property
    def array(self) -> Any:
        """Return the array itself."""
        return self._a

    @property
    def in_double(self) -> bool:
        """Return whether products behind bounds are computed there, in float64."""
        return self._doubles

    def describe(self) -> str:
        n, p = self.shape
        return f"{_library(self._a)} {self._dtype.name} {n} x {p} on {_compat().device(self._a)}"

    # ---- products ----------------------------------------------------------------------------

    def matvec(self, x: FloatArray) -> FloatArray:
        with self._precise():
            return self._fetched(self._a @ self._sent(x, self._dtype))

    def rmatvec(self, r: FloatArray) -> FloatArray:
        with self._precise():
            return self._fetched(self._a.T @ self._sent(r, self._dtype))

    def matvec_in_double(self, x: FloatArray) -> FloatArray:
        if not self._doubles:
            return self.matvec(x)
        with self._precise():
            v = self._sent(x)
            return self._fetched(self._xp.concat([block @ v for _, block in self._wide_blocks()]))

    def rmatvec_in_double(self, r: FloatArray, means: FloatArray | None = None) -> FloatArray:
        """Return ``A.T @ r``, or ``(A - means).T @ r``, multiplied and added up in float64."""
        if not self._doubles:
            whole = super().rmatvec_in_double(r)
            return whole if means is None else whole - np.multiply.outer(means, r.sum(axis=0))
        with self._precise():
            v, out = self._sent(r), 0.0
            for rows, block in self._wide_blocks(means):
                out = out + block.T @ v[rows, ...]
            return self._fetched(out)

    # ---- parts -------------------------------------------------------------------------------

    def restrict(self, support: IntArray) -> Design:
        if self._stay(support):
            with self._precise():
                there = self._xp.astype(self._taken(support, axis=1), self._xp.float64)
                return ForeignDesign(there)
        return DenseDesign(self._columns(support).T)

    def restrict_again(self, support: IntArray, last: IntArray, restricted: Design) -> Design:
        if self._stay(support):
            return self.restrict(support)
        return columns_again(self._columns, support, last, restricted)

    def _stay(self, support: IntArray) -> bool:
        """Return whether so many columns are copied there, in float64, and not brought over."""
        return self._doubles and not is_fetched(self.shape[0], support.size)

    def _columns(self, support: IntArray) -> FloatArray:
        """Return the columns as rows of a float64 array."""
        if not support.size:
            return np.empty((0, self.shape[0]))
        return np.ascontiguousarray(self._fetched(self._taken(support, axis=1)).T)

    def restrict_rows(self, rows: IntArray) -> Design:
        return ForeignDesign(self._taken(rows, axis=0))

    def _taken(self, index: IntArray, axis: int) -> Any:
        with self._precise():
            return self._xp.take(self._a, self._places(index), axis=axis)

    def _places(self, index: IntArray) -> Any:
        return self._xp.asarray(np.array(index, dtype=np.int64), device=self._device)

    def to_array(self) -> FloatArray:
        with self._precise():
            return self._fetched(self._a)

    def row_blocks(self, size: int) -> Iterator[tuple[slice, FloatArray]]:
        for start in range(0, self.shape[0], size):
            rows = slice(start, min(start + size, self.shape[0]))
            with self._precise():
                block = self._fetched(self._a[rows, :])
            yield rows, block

    # ---- sums over rows ----------------------------------------------------------------------

    def gram(self, h: FloatArray | None = None) -> FloatArray:
        return self.gram_rows(None, h)

    def gram_rows(
        self,
        rows: IntArray | None,
        h: FloatArray | None = None,
        means: FloatArray | None = None,
    ) -> FloatArray:
        """Return some rows of ``A.T @ diag(h) @ A``, None for all; or those of ``A - means``."""
        p = self.shape[1]
        if not self._doubles:
            total = np.zeros((p if rows is None else rows.size, p))
            for some, here in self.row_blocks(rows_of_a_block(self.shape[1], FAR_BLOCK_BYTES)):
                block = here if means is None else here - means
                weights = np.ones(len(block)) if h is None else h[some]
                left = block if rows is None else block[:, rows]
                total += cross_product(left, weights[:, None] * block)
            return total
        with self._precise():
            out, scale = 0.0, None if h is None else self._sent(h)
            places = None if rows is None else self._places(rows)
            for some, block in self._wide_blocks(means):
                left = block if places is None else self._xp.take(block, places, axis=1)
                out = out + (left if scale is None else scale[some][:, None] * left).T @ block
            return self._fetched(out)

    def column_square_norms(self, h: FloatArray | None = None) -> FloatArray:
        if not self._doubles:
            return super().column_square_norms(h)
        with self._precise():
            weights, out = None if h is None else self._sent(h), 0.0
            for rows, block in self._wide_blocks():
                squares = block * block
                out = out + (
                    self._xp.sum(squares, axis=0) if weights is None else weights[rows] @ squares
                )
            return self._fetched(out)

    def sampled_square_norms(self, rows: int) -> FloatArray | None:
        places = np.arange(0, self.shape[0], max(1, self.shape[0] // rows))
        return ForeignDesign(self._taken(places, axis=0)).column_square_norms() / places.size

    def first_nonfinite(self) -> tuple[int, int] | None:
        xp = self._xp
        with self._precise():
            bad = np.flatnonzero(~_as_numpy(xp.all(xp.isfinite(self._a), axis=1)))
            if not bad.size:
                return None
            row = int(bad[0])
            return row, int(np.flatnonzero(~np.isfinite(self._fetched(self._a[row, :])))[0])

    # ---- there and back ----------------------------------------------------------------------

    def _sent(self, values: FloatArray, dtype: Any = np.float64) -> Any:
        self.transfers += 1
        return self._xp.asarray(np.array(values, dtype=dtype, order="C"), device=self._device)

    def _fetched(self, values: Any) -> FloatArray:
        self.transfers += 1
        return np.array(_as_numpy(values), dtype=np.float64)

    def _wide_blocks(self, means: FloatArray | None = None) -> Iterator[tuple[slice, Any]]:
        """Yield blocks of rows in float64, there, without the means of the columns if given."""
        plain = self._dtype == np.float64 and means is None
        shift = None if means is None else self._sent(means)
        size = self.shape[0] if plain else rows_of_a_block(self.shape[1], FAR_BLOCK_BYTES)
        for start in range(0, self.shape[0], size):
            rows = slice(start, min(start + size, self.shape[0]))
            block = self._xp.astype(self._a[rows, :], self._xp.float64)
            yield rows, block if shift is None else block - shift

    def _has_doubles(self) -> bool:
        """Return whether the device computes in float64."""
        if self._dtype == np.float64 or self._jax:
            return True
        try:
            self._xp.astype(self._a[:0, :], self._xp.float64)
        except (ValueError, TypeError, RuntimeError):
            return False
        return True

    def _precise(self) -> AbstractContextManager[Any]:
        """Make JAX keep float64, and multiply float32 in float32 also where shorter is faster."""
        stack = ExitStack()
        if self._jax:
            import jax

            stack.enter_context(double_precision(jax))
            stack.enter_context(jax.default_matmul_precision("highest"))
        return stack


def double_precision(jax: Any) -> Any:
    """Return the context in which JAX keeps double precision, under its old or its new name."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()


def is_remote(design: Design) -> bool:
    """Return whether some entries are held by another library, or by workers."""
    return bool((Access.DEVICE | Access.DISTRIBUTED) & design.access)


def adjoint(design: Design) -> Callable[[FloatArray], FloatArray]:
    """Return the product with the transpose; that of entries held elsewhere is in float64."""
    return design.rmatvec_in_double if is_remote(design) else design.rmatvec


def is_fetched(rows: int, columns: int) -> bool:
    """Return whether so many columns are fetched to NumPy, and not copied where they are."""
    return columns <= _COLUMNS and 8 * rows * columns <= _COLUMN_BYTES


def is_foreign(values: Any) -> bool:
    """Return whether ``values`` is an array of another library that speaks the array API."""
    if isinstance(values, (np.ndarray, np.generic)):
        return False
    for module, name in (("torch", "Tensor"), ("cupy", "ndarray")):
        library = sys.modules.get(module)
        if library is not None and isinstance(values, getattr(library, name)):
            return True
    return hasattr(values, "__array_namespace__")


def fetched(values: Any, where: str) -> NDArray[Any]:
    """Return an array of another library as NumPy's.

    Raises
    ------
    MissingDependencyError
        Without ``array-api-compat``.
    """
    _compat(where)
    return _as_numpy(values.detach() if hasattr(values, "detach") else values)


def _library(array: Any) -> str:
    """Return the name of the library that an array is of."""
    return type(array).__module__.partition(".")[0].removesuffix("lib")


def _check_plain(array: Any, where: str, *, traced: bool) -> None:
    """Refuse arrays without entries of their own: sparse ones, and JAX's inside a function."""
    if str(getattr(array, "layout", "torch.strided")) != "torch.strided":
        raise DataTypeError(
            f"{where} is a sparse tensor of PyTorch; pass it as SciPy's, for example "
            "scipy.sparse.coo_array((values, (rows, columns)), shape), or as A.to_dense()."
        )
    if traced:
        import jax

        if isinstance(array, jax.core.Tracer):
            raise DataTypeError(
                f"{where} has no numbers while JAX traces a function (jit, grad, vmap), and what "
                "is selected depends on them; solve outside such functions."
            )


def _as_numpy(values: Any) -> NDArray[Any]:
    compat = _compat()
    if compat.is_torch_array(values) or compat.is_cupy_array(values):
        values = compat.to_device(values, "cpu")
    elif not compat.is_jax_array(values):
        return np.from_dlpack(values)
    return np.asarray(values)


def _compat(where: str = "A") -> Any:
    try:
        import array_api_compat
    except ImportError as error:
        raise MissingDependencyError(
            f"{where} is an array of another library, for which the package array-api-compat is "
            "missing; pip install array-api-compat, or pass the array as NumPy's."
        ) from error
    return array_api_compat
