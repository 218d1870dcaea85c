"""Ctrl-C while a package is imported: it waits, as what is left half imported fails ever after."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from sparsemodel.loading import uninterrupted


@pytest.fixture(autouse=True)
def listening() -> Iterator[None]:
    """Hear of Ctrl-C, which a process in the background of a shell ignores."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_the_end_of_an_import(tmp_path, monkeypatch) -> None:
    (tmp_path / "half_imported.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGINT)\ndone = True\n", "utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        import half_imported
    assert half_imported.done
    assert sys.modules.pop("half_imported").done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_other_handlers_stay(handler) -> None:
    signal.signal(signal.SIGINT, handler)
    with uninterrupted():
        assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_leave_it_alone() -> None:
    seen = []

    def ask() -> None:
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_errors_of_an_import_are_its_own() -> None:
    with pytest.raises(ModuleNotFoundError), uninterrupted():
        import no_such_package_anywhere  # noqa: F401
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_proofs_go_on_after_ctrl_c_while_numba_is_loaded() -> None:
    program = """
import signal, sys, numpy as np, sparsemodel as sm
signal.signal(signal.SIGINT, signal.default_int_handler)
def registered(frame, event, argument):
    at = frame.f_code
    if event == "return" and at.co_name == "decorator" and "pythonapi" in at.co_filename:
        registered.left -= 1
        if registered.left == 0:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)
registered.left = 10
w = sm.Variable(20)
A = np.random.default_rng(0).standard_normal((30, 20))
loss = sm.squared_loss(A @ w, A[:, 0] - A[:, 1] + 0.1 * np.sin(np.arange(30)))
problem = sm.Problem(sm.minimize(loss), sm.card(w) <= 4)
problem.solve("omp")
sys.setprofile(registered)
try:
    problem.prove()
except KeyboardInterrupt:
    pass
assert registered.left == 0
print(problem.prove().title())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
