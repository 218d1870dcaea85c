"""What entry points announce: backends, losses; a broken plug-in never breaks the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeVar, final

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import (
    Backend,
    BackendUnavailableError,
    Capabilities,
    DataFit,
    ModelError,
    SparseModelError,
    TargetKind,
)
from sparsemodel.interfaces.backend import check_class
from sparsemodel.interfaces.errors import closest
from sparsemodel.losses import builtin_losses

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "sparsemodel.backends"
LOSSES = "sparsemodel.losses"

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class PluginInfo:
    """A plug-in that was found: where it comes from, and what is wrong with it, if so."""

    name: str
    distribution: str
    problem: str | None = None

    @property
    def available(self) -> bool:
        """Return whether it could be loaded."""
        return self.problem is None


@final
class Plugins(Generic[T]):
    """What one group of entry points holds; found once, loaded one by one when asked for."""

    def __init__(
        self,
        group: str,
        base: type[T],
        misfit: Callable[[type[T]], str],
        builtin: Callable[[], dict[str, type[T]]] = dict,
    ) -> None:
        self._group, self._base, self._misfit, self._builtin = group, base, misfit, builtin
        self._lock = threading.Lock()
        self._entries: dict[str, EntryPoint] | None = None
        self._loaded: dict[str, type[T] | str] = {}
        self._registered: dict[str, type[T]] = {}
        # By name: a distribution parses its metadata when asked.
        self._distributions: dict[str, str] = {}

    def entries(self) -> Mapping[str, EntryPoint]:
        """Return the entry points by name; loads nothing."""
        from importlib.metadata import entry_points  # costs more to import than all of this package

        with self._lock:
            if self._entries is None:
                # Where two distributions use one name the built-in one keeps it, and otherwise
                # the same one wins whatever the order of the search path.
                found = entry_points(group=self._group)
                # A distribution parses its metadata when asked: once for all that it registers.
                owners = {id(e.dist): e.dist for e in found if e.dist is not None}
                names = {key: owner.name for key, owner in owners.items()}
                named = [(e, names.get(id(e.dist), "")) for e in found]
                named.sort(key=_precedence, reverse=True)
                self._distributions.update((e.name, distribution) for e, distribution in named)
                self._entries = dict(sorted({e.name: e for e, _ in named}.items()))
            return self._entries

    def register(self, name: str, cls: type[T]) -> None:
        """Give a class a name in this process; a class of the same name is replaced.

        Raises
        ------
        ModelError
            When an installed package has that name.
        """
        if name in self._builtin() or name in self.entries():
            raise ModelError(
                f"The name {name!r} is that of an installed backend, and plans that name it mean "
                f'that one. Give {cls.__name__} another: name: ClassVar[str] = "my_{name}".'
            )
        self._registered[name] = cls

    def registered(self) -> Mapping[str, type[T]]:
        """Return the classes that were given names in this process."""
        return self._registered

    def refresh(self) -> None:
        """Forget what was found."""
        with self._lock:
            self._entries = None
            self._loaded.clear()
            self._distributions.clear()

    def names(self) -> list[str]:
        """Return every name, sorted."""
        return sorted({*self._builtin(), *self.entries(), *self._registered})

    def load(self, name: str) -> type[T] | str | None:
        """Return the class of that name, why it cannot be used, or None where there is none."""
        builtin = self._builtin()
        if name in builtin:
            return builtin[name]
        if name in self._registered:
            return self._registered[name]
        table = self.entries()
        if name not in table:
            return None
        if name not in self._loaded:
            self._loaded[name] = self._import(table[name])
        return self._loaded[name]

    def _import(self, entry: EntryPoint) -> type[T] | str:
        # A plug-in is code of others: whatever its import raises is its reason, not our crash.
        try:
            cls = entry.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001
            return f"{type(error).__name__}: {error}"
        if not (isinstance(cls, type) and issubclass(cls, self._base)):
            package = ".".join(self._base.__module__.split(".")[:2])
            return f"{entry.value} is not a subclass of {package}.{self._base.__name__}"
        return self._misfit(cls) or cls

    def get(self, name: str, what: str, error: type[SparseModelError]) -> type[T]:
        """Return the class of that name, or raise ``error`` with what is known of it."""
        found = self.load(name)
        if found is None:
            known = self.names()
            close = closest(name, known)
            hint = f" Did you mean {close!r}?" if close else ""
            plain, bracket, options = name.partition("(")
            if bracket and plain.strip() in known:
                made = getattr(self.load(plain.strip()), "__name__", "")
                hint = f" Options are given to the class of {plain.strip()!r}: {made}({options}."
            raise error(f"There is no {what} {name!r}.{hint} Known: {', '.join(known) or 'none'}.")
        if isinstance(found, str):
            raise error(f"The {what} {name!r} could not be loaded: {found}")
        return found

    def available(self) -> tuple[PluginInfo, ...]:
        """Return all, with what is wrong if anything."""
        builtin, out = self._builtin(), []
        for name in self.names():
            found = self.load(name)
            problem = found if isinstance(found, str) else None
            where = "sparsemodel" if name in builtin else self._distributions.get(name)
            where = "this session" if name in self._registered else where
            out.append(PluginInfo(name, where or "unknown", problem))
        return tuple(out)


def _precedence(named: tuple[EntryPoint, str]) -> tuple[bool, str, str]:
    entry, distribution = named
    return distribution != "sparsemodel", distribution, entry.value


def _backend_misfit(cls: type[Backend]) -> str:
    """Return why planning with a class could fail, "" where nothing speaks against it."""
    from inspect import signature

    try:
        backend = cls()
        signature(backend.solve).bind(None, None)
        known = isinstance(backend.name, str) and isinstance(backend.capabilities, Capabilities)
    except Exception as error:  # noqa: BLE001 - code of others
        return f"{cls.__name__} is not made as this release needs it: {error!r}"
    return "" if known else f"{cls.__name__} has no name or no Capabilities"


def _loss_misfit(cls: type[DataFit]) -> str:
    """Return why declaring with a class could fail, "" where nothing speaks against it."""
    from inspect import signature

    try:
        loss = cls()
        signature(loss.curvature).bind(None)
        known = isinstance(loss.name, str) and isinstance(loss.target_kind, TargetKind)
    except Exception as error:  # noqa: BLE001 - code of others
        return f"{cls.__name__} is not made as this release needs it: {error!r}"
    return "" if known else f"{cls.__name__} has no name or no TargetKind"


def builtin_loss_classes() -> dict[str, type[DataFit]]:
    """Return the losses of this package by what the command line calls them."""
    end = "_loss"
    named = [(loss.name, type(loss)) for loss in builtin_losses() if loss.name.endswith(end)]
    return {name.removesuffix(end).replace("_", "-"): cls for name, cls in named}


_backends = Plugins[Backend](GROUP, Backend, _backend_misfit)  # type: ignore[type-abstract]
_losses = Plugins[DataFit](LOSSES, DataFit, _loss_misfit, builtin_loss_classes)  # type: ignore[type-abstract]


def entries() -> Mapping[str, EntryPoint]:
    """Return the entry points of the backends by name; found once. Loads nothing."""
    return _backends.entries()


def refresh() -> None:
    """Discard what was discovered, so that packages installed meanwhile are found."""
    _backends.refresh()
    usable_backends.cache_clear()
    _losses.refresh()


@rejects_unknown_arguments
def register(cls: type[Backend]) -> type[Backend]:
    """Give a backend a name in this session, as an installed package would; a class decorator.

    Its ``name`` then stands in plans (``"my_method > omp"``), in ``explain()``, ``theory()``,
    :func:`available_backends` and ``sm.backends``. Registering a class of the same name again
    replaces the first, as happens in a notebook.

    Parameters
    ----------
    cls
        The class of the backend; all its options need defaults.

    Returns
    -------
    type
        The class.

    Raises
    ------
    ModelError
        When it is not such a class, lacks a name or capabilities (the message has the line to
        write), or has the name of an installed backend.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> from sparsemodel.interfaces import Capabilities, IterativeBackend
    >>> @sm.register
    ... @dataclass(frozen=True)
    ... class Short(IterativeBackend):
    ...     name: ClassVar[str] = "short_steps"
    ...     capabilities: ClassVar[Capabilities] = Capabilities()
    ...
    ...     def init(self, objective, context):
    ...         return context.first_point(objective)
    ...
    ...     def step(self, objective, point, context):
    ...         from sparsemodel.numerics import project
    ...         return objective.point(*project(objective, point.x - objective.gradient(point)))
    ...
    ...     def iterate(self, point):
    ...         return point
    ...
    ...     def stopped(self, objective, point):
    ...         return None
    >>> w = sm.Variable(3)
    >>> problem = sm.Problem(sm.minimize(sm.squared_loss(w, [3.0, 1.0, 2.0])), sm.card(w) <= 1)
    >>> problem.solve("short_steps", max_iter=20).support
    array([0])
    """
    if not (isinstance(cls, type) and issubclass(cls, Backend)):
        shown = cls.__name__ if isinstance(cls, type) else repr(cls)
        raise ModelError(
            f"register() takes the class of a backend, and {shown} is none. Derive it from "
            "sparsemodel.interfaces.IterativeBackend and write sm.register(MyBackend), without "
            "brackets behind the class."
        )
    check_class(cls)
    if problem := _backend_misfit(cls):
        raise ModelError(f"{problem}. All options need defaults, and abstract methods a body.")
    _backends.register(cls.name, cls)
    usable_backends.cache_clear()
    return cls


def registered() -> Mapping[str, type[Backend]]:
    """Return the backends that this session registered, by name."""
    return _backends.registered()


def backend_class(name: str) -> type[Backend]:
    """Return the backend class registered as ``name``.

    Raises
    ------
    BackendUnavailableError
        When there is none of that name (close names are suggested), or it could not be loaded.
    """
    return _backends.get(name, "backend", BackendUnavailableError)


@rejects_unknown_arguments
def available_backends() -> tuple[PluginInfo, ...]:
    """Return every discovered backend, those of other packages included, and why one does not load.

    Returns
    -------
    tuple of PluginInfo
        With ``name``, the distribution that brings it, and ``problem``, empty where it loads.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> "nhtp" in [backend.name for backend in sm.available_backends()]
    True
    """
    return _backends.available()


@cache
def usable_backends() -> tuple[tuple[str, type[Backend]], ...]:
    """Return the names and classes of the backends that can be loaded."""
    loaded = [(name, _backends.load(name)) for name in _backends.names()]
    return tuple((name, cls) for name, cls in loaded if isinstance(cls, type))


def loss_class(name: str) -> type[DataFit]:
    """Return the class of the loss ``name``: built in, or registered by a plug-in.

    Built-in losses are called as on the command line, ``"squared"`` or ``"smoothed-hinge"``; the
    others by their entry point in the group ``sparsemodel.losses``.

    Raises
    ------
    ModelError
        When there is none of that name (close names are suggested), or it could not be loaded.
    """
    return _losses.get(name, "loss", ModelError)


@rejects_unknown_arguments
def available_losses() -> tuple[PluginInfo, ...]:
    """Return every loss by name, those of other packages included, and why one does not load.

    Returns
    -------
    tuple of PluginInfo
        As for :func:`available_backends`. The names are those of the command line and of
        :func:`~sparsemodel.loss_term`.

    Examples
    --------
    >>> import sparsemodel as sm
    >>> [info.name for info in sm.available_losses() if info.distribution == "sparsemodel"][:2]
    ['absolute', 'cox']
    """
    return _losses.available()
