"""What every model can be asked: predictions for new data, and how well it fits its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from sparsemodel.arguments import rejects_unknown_arguments
from sparsemodel.interfaces import FloatArray, ModelError
from sparsemodel.interfaces.errors import NameHints
from sparsemodel.modelling.declared import Reading
from sparsemodel.modelling.formulations.formulation import CompiledProblem
from sparsemodel.modelling.results.predicting import Kind, Predictor, predictor_of
from sparsemodel.modelling.results.summary import Summary
from sparsemodel.threads import small_work


@final
@dataclass(frozen=True, slots=True, eq=False)
class ModelContext:
    """A point of a problem, with what predictions and summaries of it need."""

    predictor: Predictor | ModelError
    compiled: CompiledProblem
    x: FloatArray

    @classmethod
    def of(cls, reading: Reading, compiled: CompiledProblem, x: FloatArray) -> ModelContext:
        """Return the context of ``x``, in the terms of the declaration."""
        return cls(predictor_of(reading, compiled.layout.split(x)), compiled, x)


_COEFFICIENTS = "coefficients by name are in .coefficients, those of each variable in .values"
_FIT = "fit measures are in .summary(): r2, deviance_explained, accuracy, aic, bic, ..."
_PROVED = ".status and .gap say what is known; problem.prove() proves it"
_SHOWN = (
    "write problem.certify().save('report.html'); sparsemodel.reporting.plots draws .coefficients"
)
_OF_THE_PROBLEM = "the problem has it: problem.certify(), problem.prove(), problem.explain()"
_CHOSEN = "write .select('ebic') or .cross_validate(folds=5); each returns a solution with its .k"
NAMES_OF_PATHS = {
    **dict.fromkeys(("best", "best_k", "choose", "ebic", "bic", "aic", "cv"), _CHOSEN),
    **dict.fromkeys(("values", "objectives", "fun"), "it is .objective; path.at(k) is a solution"),
    **dict.fromkeys(
        ("coef_", "coefs", "coefficients", "solution", "solutions", "predict"),
        "write path.at(k), a solution",
    ),
    **dict.fromkeys(("supports", "ks", "lambdas"), "these are .support, .k and .ridges"),
}
"""What is written of a path, by the names that other packages have for it."""


class Fitted(NameHints):
    """A model that predicts, and says how well it fits."""

    __slots__ = ()

    _hints_by_name: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("coef_", "coef", "params", "beta", "intercept_", "x"), _COEFFICIENTS),
        **dict.fromkeys(("aic", "bic", "deviance", "r2", "rsquared", "score"), _FIT),
        **dict.fromkeys(("objective", "fun", "obj", "ObjVal", "loss"), "the objective is .value"),
        **dict.fromkeys(("nnz", "k", "size", "n_features"), "write .support.size"),
        **dict.fromkeys(("optimal", "is_optimal", "success"), _PROVED),
        **dict.fromkeys(("certify", "certificate", "prove", "explain"), _OF_THE_PROBLEM),
        **dict.fromkeys(("time", "runtime", "solve_time", "seconds"), "it is in .timings"),
        **dict.fromkeys(("fitted", "fitted_values"), "write .predict(A), or (A @ w).value"),
        **dict.fromkeys(("residuals", "resid"), "write (A @ w - b).value"),
        **dict.fromkeys(("selected", "features", "selected_features", "edges"), "it is .support"),
        **dict.fromkeys(("plot", "report"), _SHOWN),
        **dict.fromkeys(("n_iter", "n_iter_"), "it is .iterations"),
        "w": "write w.value; .values has the values of every variable",
        "lower_bound": "it is .bound; problem.certify() looks for a better one",
        "predict_proba": "write .predict(new, kind='probability')",
        "pvalues": "there are none after a search; .summary() has errors that say so",
        "save": "pickle.dump keeps it; problem.certify().save(file) writes what can be checked",
        "verify": "write certificates.verify(certificate, problem.form)",
    }

    use: ModelContext | None
    """What :meth:`predict` and :meth:`summary` ask."""

    @rejects_unknown_arguments
    def predict(
        self,
        new: Any,
        kind: Kind = "response",
        *,
        offset: Any = None,
        exposure: Any = None,
    ) -> Any:
        """Return predictions for new data.

        Parameters
        ----------
        new
            New observations, shape ``(n, p)`` as the data matrix of the loss. If the model was
            declared with a data frame (or a variable with ``names=``), columns of a data frame are
            found by name, in any order; columns with a zero coefficient may be missing, and other
            columns are ignored.
        kind
            ``"response"`` returns predictions of the target: means for counts and amounts with the
            log link, labels for classes (0 and 1, or 0 to ``m - 1``, if the target was numbers).
            ``"probability"`` returns probabilities of classes: for two classes that of the second
            one in sorted order, for more one column for each.
            ``"linear"`` returns ``A @ w + c``.
        offset
            What is added to ``A @ w + c``: a number, or one for each new row. Needed if every
            observation of the loss had an offset.
        exposure
            In place of its logarithm as ``offset``, for losses with a log link.

        Returns
        -------
        ndarray of shape (n,), or (n, m) for several outputs

        Raises
        ------
        DataError
            When columns are missing, or their number is wrong.
        ModelError
            When the problem does not have exactly one loss of ``A @ w`` plus constants, or the loss
            has no probabilities.

        Examples
        --------
        >>> import numpy as np, sparsemodel as sm
        >>> A = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> w = sm.Variable(2, name="w")
        >>> goal = sm.minimize(sm.squared_loss(A @ w, [2.0, 0.0, 2.0]))
        >>> sm.Problem(goal, sm.card(w) <= 1).solve().predict([[5.0, 3.0]]).round(6)
        array([6.])
        """
        predictor = self._asked("predict").predictor
        if isinstance(predictor, ModelError):
            raise predictor
        return predictor(new, kind, offset=offset, exposure=exposure)

    @small_work()
    @rejects_unknown_arguments
    def summary(self) -> Summary:
        """Return measures of the fit, and standard errors of the coefficients on their support.

        R2, deviance explained, accuracy and AUC refer to the training data. Standard errors are
        those of maximum likelihood without the ridge: square roots of the diagonal of
        :math:`\\phi H^{-1}`, with the Hessian of the loss on the support and the dispersion
        :math:`\\phi` (for squared losses the residual variance). They ignore the selection of the
        support, and are therefore too small.

        Raises
        ------
        ModelError
            For problems with several losses, and for problems that are not regressions.

        Examples
        --------
        >>> import numpy as np, sparsemodel as sm
        >>> A = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> w = sm.Variable(2, name="w")
        >>> goal = sm.minimize(sm.squared_loss(A @ w, [2.0, 0.0, 3.0]))
        >>> summary = sm.Problem(goal, sm.card(w) <= 1).solve().summary()
        >>> round(summary.r2, 4), round(summary.estimates[0].standard_error, 4)
        (0.8929, 0.3536)
        """
        use = self._asked("summary")
        found = use.compiled.summary(use.x)
        classes = None if isinstance(use.predictor, ModelError) else use.predictor.classes
        if found.positive is None or classes is None:
            return found
        return replace(found, positive=str(classes[-1]))

    def _asked(self, what: str) -> ModelContext:
        if self.use is None:
            raise ModelError(f"{what}() is for solutions of problems.")
        return self.use
