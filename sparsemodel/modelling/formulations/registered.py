"""The forms of problems that are known: the built-in ones, and those of other distributions."""

from __future__ import annotations

from typing import Final

from sparsemodel.compiler.services import objective_of, restricted_of
from sparsemodel.interfaces import Form, ModelError
from sparsemodel.modelling.declared import Reading
from sparsemodel.modelling.formulations.formulation import Formulation
from sparsemodel.modelling.precision_matrices.formulation import PrecisionMatrices
from sparsemodel.modelling.regression.formulation import Regressions
from sparsemodel.registry import PluginInfo, Plugins

GROUP: Final = "sparsemodel.formulations"
"""The group of entry points in which other distributions name their formulations."""

_BUILT_IN: Final[dict[str, type[Formulation]]] = {
    "precision_matrices": PrecisionMatrices,
    "regressions": Regressions,
}
_known: dict[type[Form], Formulation] = {cls.form: cls() for cls in _BUILT_IN.values()}
_BUILT_IN_FORMS: Final = frozenset(_known)
_discovered = False


def register_formulation(formulation: Formulation) -> None:
    """Make a form of problem known; a second formulation of a form replaces the first.

    A distribution names the class in its entry points instead, in the group
    ``sparsemodel.formulations``.

    Raises
    ------
    ModelError
        When it is not a :class:`Formulation`, or its form is a built-in one.
    """
    # Only when another form is registered: certificates take long to import.
    from sparsemodel.certificates.verify import verifier_of

    if not isinstance(formulation, Formulation):
        raise ModelError(
            f"A formulation is a value of a class derived from Formulation, not {formulation!r}."
        )
    form = formulation.form
    if form in _BUILT_IN_FORMS:
        raise ModelError(f"{form.__name__} is a built-in form, and its formulation stays.")
    _known[form] = formulation
    objective_of.register(form, formulation.objective)
    restricted_of.register(form, formulation.restricted)
    verifier_of.register(form, lambda _: formulation.verify)


def formulation_of(declared: Reading) -> Formulation:
    """Return the formulation that a declaration is meant for.

    What a built-in form recognises is its own. What none recognises is taken as a regression: its
    errors say what is understood.
    """
    found = _recognising(declared)
    if found is None:
        _discover()
        found = _recognising(declared)
    return Regressions() if found is None else found


def available_formulations() -> tuple[PluginInfo, ...]:
    """Return the formulations that entry points announce, with what is wrong if anything."""
    return _plugins.available()


def refresh() -> None:
    """Read the entry points again, so that packages installed meanwhile are found."""
    global _discovered
    _plugins.refresh()
    _discovered = False


def _recognising(declared: Reading) -> Formulation | None:
    return next((one for one in _known.values() if one.recognises(declared)), None)


def _discover() -> None:
    """Register the formulations that entry points announce, once."""
    global _discovered
    if _discovered:
        return
    _discovered = True
    for name in _plugins.names():
        found = _plugins.load(name)
        if isinstance(found, type) and name not in _BUILT_IN:
            register_formulation(found())


def _misfit(cls: type[Formulation]) -> str:
    """Return why a class cannot be registered, "" where nothing speaks against it."""
    try:
        form = cls().form
    except Exception as error:  # noqa: BLE001 - code of others
        return f"{cls.__name__} is not made as this release needs it: {error!r}"
    if not (isinstance(form, type) and issubclass(form, Form)):
        return f"{cls.__name__}.form is not a subclass of sparsemodel.interfaces.Form"
    return f"{form.__name__} is a built-in form" if form in _BUILT_IN_FORMS else ""


_plugins: Final = Plugins[Formulation](GROUP, Formulation, _misfit, lambda: _BUILT_IN)  # type: ignore[type-abstract]
