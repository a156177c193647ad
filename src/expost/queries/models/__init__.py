"""Queries from models that other libraries have fitted: affine scores, and curves of them."""

from __future__ import annotations

from expost.queries.models.from_sklearn import from_sklearn
from expost.queries.models.from_statsmodels import from_statsmodels

__all__ = ["from_sklearn", "from_statsmodels"]
