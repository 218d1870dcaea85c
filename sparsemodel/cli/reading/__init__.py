"""Reading tables from files: delimited text, Parquet, NumPy archives, svmlight."""

from sparsemodel.cli.reading.dispatch import FORMATS, read_table
from sparsemodel.cli.reading.table import Columns, Table

__all__ = ["FORMATS", "Columns", "Table", "read_table"]
