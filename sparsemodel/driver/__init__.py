"""Running a plan: stages one after the other, each result checked, the best one finished."""

from sparsemodel.driver.outcome import (
    FoundBound,
    LowerBound,
    Outcome,
    RunOptions,
    ShortProof,
    StageEnd,
)
from sparsemodel.driver.run import run

__all__ = ["FoundBound", "LowerBound", "Outcome", "RunOptions", "ShortProof", "StageEnd", "run"]
