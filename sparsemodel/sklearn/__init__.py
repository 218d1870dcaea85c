"""Estimators for scikit-learn: sparse models that pass its own checks.

They need scikit-learn (the extra ``sklearn``) and are imported by those who ask for them alone::

    from sparsemodel.sklearn import SparseLogisticRegression

``k`` bounds the number of features with nonzero coefficients; regressions and classifiers are also
feature selectors (``get_support``, ``transform``), and the ``...CV`` versions choose ``k`` and the
ridge.
"""

from sparsemodel.interfaces import MissingDependencyError

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as _error:
    raise MissingDependencyError(
        "sparsemodel.sklearn needs scikit-learn; pip install scikit-learn."
    ) from _error

from sparsemodel.sklearn.classification import (
    SparseLogisticRegression,
    SparseLogisticRegressionCV,
    SparseSVC,
    SparseSVCCV,
)
from sparsemodel.sklearn.precision import (
    SparsePrecision,
    SparsePrecisionCV,
)
from sparsemodel.sklearn.regression import (
    SparseGammaRegression,
    SparseGammaRegressionCV,
    SparseGeneralizedRegression,
    SparseGeneralizedRegressionCV,
    SparseHuberRegression,
    SparseHuberRegressionCV,
    SparseLinearRegression,
    SparseLinearRegressionCV,
    SparsePoissonRegression,
    SparsePoissonRegressionCV,
    SparseQuantileRegression,
    SparseQuantileRegressionCV,
)
from sparsemodel.sklearn.survival import (
    SparseCoxRegression,
    SparseCoxRegressionCV,
)

__all__ = [
    "SparseCoxRegression",
    "SparseCoxRegressionCV",
    "SparseGammaRegression",
    "SparseGammaRegressionCV",
    "SparseGeneralizedRegression",
    "SparseGeneralizedRegressionCV",
    "SparseHuberRegression",
    "SparseHuberRegressionCV",
    "SparseLinearRegression",
    "SparseLinearRegressionCV",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
    "SparsePoissonRegression",
    "SparsePoissonRegressionCV",
    "SparsePrecision",
    "SparsePrecisionCV",
    "SparseQuantileRegression",
    "SparseQuantileRegressionCV",
    "SparseSVC",
    "SparseSVCCV",
]
