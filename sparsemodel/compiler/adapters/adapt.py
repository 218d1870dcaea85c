"""Which adapters a backend needs for a form, if any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

from sparsemodel.compiler.adapters.pricing import Priced
from sparsemodel.compiler.adapters.smoothing import (
    Smoothed,
    smoothable,
    smoothed_form,
    typical_widths,
)
from sparsemodel.compiler.adapters.without_bounds import WithoutBounds
from sparsemodel.interfaces import Backend, Form, SparseRegression

_ADAPTERS = (Priced, Smoothed, WithoutBounds)


@final
@dataclass(frozen=True, slots=True)
class Adapted:
    """A backend made able, or why nothing helps."""

    backend: Backend
    objections: tuple[str, ...] = ()


def adapt(backend: Backend, form: Form) -> Adapted:
    """Return the backend with the adapters that let it solve ``form``.

    Losses with kinks are smoothed for it, a price becomes a search over the limit. What is left
    of its objections is returned with it; none means it can run.
    """
    reasons = backend.objections(form)
    if not reasons or not isinstance(form, SparseRegression):
        return Adapted(backend, reasons)
    easier: SparseRegression = form
    adapted: Backend = backend
    smooth = type(backend).capabilities.smooth  # others ask for none, and kinks may be their own
    if smooth and not form.traits.has_hessian and smoothable(form):
        easier = smoothed_form(easier, typical_widths(easier))
        nonsmooth = {t.loss.name for t in form.terms if not t.traits.has_hessian}
        adapted = Smoothed(adapted, tuple(sorted(nonsmooth)))
    priced = form.sparsity.priced and not type(backend).capabilities.price
    if priced and form.sparsity.plain:  # a path along k knows no other limit
        easier = replace(easier, sparsity=replace(easier.sparsity, price=0.0))
        adapted = Priced(adapted)
    if adapted is backend:
        return Adapted(backend, reasons)
    remaining = backend.objections(easier)
    return Adapted(backend, remaining) if remaining else Adapted(adapted)


def adapter_words(backend: Backend) -> tuple[str, ...]:
    """Return what the adapters around a backend do, for ``explain()``."""
    if isinstance(backend, _ADAPTERS):
        return (backend.describe(), *adapter_words(backend.inner))
    return ()


def innermost(backend: Backend) -> Backend:
    """Return the backend that adapters stand around, or the backend itself."""
    return innermost(backend.inner) if isinstance(backend, _ADAPTERS) else backend
