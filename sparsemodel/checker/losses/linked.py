"""Losses of counts and amounts with other links: ``q u^2 + s u - b log(u)`` of positive ``u``."""

from __future__ import annotations

from typing import Any

import numpy as np

LINKED = ("poisson_identity_loss", "poisson_sqrt_loss", "gamma_inverse_loss")


def _parts(name: str, y: Any) -> tuple[float, Any, Any]:
    """Return ``q``, ``s`` and ``b``."""
    if name == "gamma_inverse_loss":
        return 0.0, y, np.ones_like(y)
    return (0.0, np.ones_like(y), y) if name == "poisson_identity_loss" else (1.0, 0.0 * y, 2.0 * y)


def linked(name: str, u: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return values, their sizes and slopes; along parabolas below a small share of the best."""
    (q, line, b), edge = _parts(name, y), 1e-9 if name == "gamma_inverse_loss" else 1e-6
    v = np.maximum(u, edge * (np.sqrt(b / 2.0) if q else b / line))
    ratio = np.divide(b, v, out=np.zeros_like(v), where=b > 0.0)
    logs = b * np.log(v, out=np.zeros_like(v), where=b > 0.0)
    slope, curve = 2.0 * q * v + line - ratio, 2.0 * q + ratio * ratio / np.where(b > 0.0, b, 1.0)
    d = u - v
    more = d * (slope + d * curve / 2.0)
    size = q * v * v + np.abs(line * v) + np.abs(logs) + np.abs(d * slope) + d * d * curve
    return q * v * v + line * v - logs + more, size, slope + curve * d


def linked_conjugate(name: str, a: Any, y: Any) -> tuple[Any, Any]:
    """Return ``max a v - loss(v)`` over positive ``v``, where errors of ``v`` enter squared.

    The second value is its size, infinite outside the domain.
    """
    q, line, b = _parts(name, y)
    t, on = a - line, b > 0.0
    if not q:
        outside = np.where(on, t >= 0.0, t != 0.0)
        v = np.divide(b, -t, out=np.zeros_like(t), where=on & ~outside)
        logs = b * np.log(v, out=np.zeros_like(v), where=on & ~outside)
        return logs - b, np.where(outside, np.inf, np.abs(logs) + b)
    root = np.sqrt(t * t + 8.0 * b)
    v = np.where(t > 0.0, (t + root) / 4.0, 2.0 * b / np.where(on, root - t, 1.0))
    v = np.where(on, v, t / 2.0)
    logs = b * np.log(v, out=np.zeros_like(v), where=on)
    return t * v - v * v + logs, np.abs(t * v) + v * v + np.abs(logs) + b
