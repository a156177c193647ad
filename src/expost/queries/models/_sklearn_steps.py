"""The steps of scikit-learn that are affine maps of columns."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from expost._format import format_number
from expost.errors import InvalidInput, TinyScaleWarning, at, read_at, warn_caller
from expost.queries.models._fitted_objects import first_step, fitted_attribute, is_a, steps_of
from expost.queries.models._prediction import (
    Affine,
    AffineMap,
    Input,
    compose,
    exact_doubles,
    fitted_doubles,
    single_column,
)

__all__ = ["map_of"]


_TINY_SCALE = 1e-10
_SUPPORTED = (
    "a step may be StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, OneHotEncoder, "
    "PolynomialFeatures of degree 1, PCA, IncrementalPCA, TruncatedSVD, SimpleImputer, a selector "
    "of features, or a ColumnTransformer, FeatureUnion or Pipeline of these"
)


def map_of(step: Any) -> AffineMap:
    """Read the columns that a fitted step makes, as affine functions of those that it takes."""
    for (module, name), read in _MAPS.items():
        if is_a(step, module, name):
            return read(step)
    raise InvalidInput(f"{type(step).__name__} is not supported; {_SUPPORTED}")


def _standard(scaler: Any) -> AffineMap:
    # A scaler does what its flags say, whatever else it has computed.
    center, scale = "mean_" if scaler.with_mean else "", "scale_" if scaler.with_std else ""
    return _scale_columns(scaler, center, scale)


def _robust(scaler: Any) -> AffineMap:
    center = "center_" if scaler.with_centering else ""
    return _scale_columns(scaler, center, "scale_" if scaler.with_scaling else "")


def _max_abs(scaler: Any) -> AffineMap:
    _refuse_clipping(scaler)
    return _scale_columns(scaler, "", "scale_")


def _min_max(scaler: Any) -> AffineMap:
    _refuse_clipping(scaler)
    factors, constants = fitted_doubles(scaler, "scale_"), fitted_doubles(scaler, "min_")
    _warn_if_tiny([1 / factor for factor in factors if factor], "data_range_")
    return [
        Affine({Input(index): factor}, constant)
        for index, (factor, constant) in enumerate(zip(factors, constants, strict=True))
    ]


def _refuse_clipping(scaler: Any) -> None:
    if getattr(scaler, "clip", False):
        raise InvalidInput(f"{type(scaler).__name__}(clip=True) is not affine; fit it without clip")


def _scale_columns(scaler: Any, center: str, scale: str) -> AffineMap:
    """Return (x - center) / scale for each column, both by the fitted attribute's name, or ""."""
    width = fitted_attribute(scaler, "n_features_in_")
    centers = fitted_doubles(scaler, center) if center else [Fraction(0)] * width
    scales = fitted_doubles(scaler, scale) if scale else [Fraction(1)] * width
    if not all(scales):
        raise InvalidInput("the scaler divides by zero", scale)
    _warn_if_tiny(scales, scale)
    return [
        Affine({Input(index): 1 / divisor}, -subtracted / divisor)
        for index, (subtracted, divisor) in enumerate(zip(centers, scales, strict=True))
    ]


def _warn_if_tiny(scales: Sequence[Fraction], name: str) -> None:
    """Warn about scales that are tiny next to the largest one: of columns that hardly varied."""
    for index, scale in enumerate(scales):
        if abs(scale) < _TINY_SCALE * max(map(abs, scales)):
            warn_caller(
                f"{name}[{index}] is a scale of {format_number(scale, 3)}, less than "
                f"{format_number(_TINY_SCALE)} of the largest one: the column hardly varied, and "
                "its weight may be a rounding error. Leave the column out",
                TinyScaleWarning,
            )


def _components(step: Any) -> AffineMap:
    """Read projections on directions, of centered columns if the step has a mean."""
    directions = np.asarray(fitted_attribute(step, "components_"))
    rows = [exact_doubles(row, f"components_[{k}]") for k, row in enumerate(directions)]
    means = exact_doubles(getattr(step, "mean_", np.zeros(directions.shape[1])), "mean_")
    scales = [Fraction(1)] * len(rows)
    if getattr(step, "whiten", False):
        deviations = np.sqrt(np.asarray(step.explained_variance_))
        least = np.finfo(deviations.dtype).eps  # what scikit-learn takes for a variance of zero
        scales = exact_doubles(np.maximum(deviations, least), "explained_variance_")
        _warn_if_tiny(scales, "explained_variance_")
    return [
        Affine(
            {Input(index): weight / scale for index, weight in enumerate(row)},
            -sum((w * m for w, m in zip(row, means, strict=True)), Fraction(0)) / scale,
        )
        for row, scale in zip(rows, scales, strict=True)
    ]


def _powers(step: Any) -> AffineMap:
    """Read products of powers, which are affine if each has one factor at most."""
    powers = np.asarray(fitted_attribute(step, "powers_"))
    degree = int(powers.sum(axis=1).max(initial=0))
    if degree > 1:
        raise InvalidInput(f"PolynomialFeatures of degree {degree} is not affine; only degree 1 is")
    return [
        single_column(Input(int(row.argmax()))) if row.any() else Affine({}, Fraction(1))
        for row in powers
    ]


def _encode_categories(encoder: Any) -> AffineMap:
    categories = fitted_attribute(encoder, "categories_")
    if any(rare is not None for rare in getattr(encoder, "infrequent_categories_", [])):
        reason = "OneHotEncoder puts rare categories together; fit it without min_frequency"
        raise InvalidInput(reason)
    dropped = [None] * len(categories) if encoder.drop_idx_ is None else encoder.drop_idx_
    result = []
    for index, (known_values, drop) in enumerate(zip(categories, dropped, strict=True)):
        labels = tuple(str(label) for label in known_values)
        result += [
            single_column(Input(index, label, labels))
            for k, label in enumerate(labels)
            if k != drop
        ]
    return result


def _keep_columns(step: Any) -> AffineMap:
    if step.func is not None:
        raise InvalidInput("FunctionTransformer with a function is not supported")
    return _select_columns(range(fitted_attribute(step, "n_features_in_")))


def _check_imputer(step: Any) -> AffineMap:
    # A value of a domain is never missing.
    statistics = fitted_attribute(step, "statistics_")
    missing = step.missing_values
    if isinstance(missing, (str, numbers.Real)) and missing == missing:
        raise InvalidInput("SimpleImputer replaces a value that a subject may have")
    if step.add_indicator:
        raise InvalidInput("SimpleImputer(add_indicator=True) is not supported")
    if not step.keep_empty_features and any(entry != entry for entry in statistics):
        raise InvalidInput("SimpleImputer was fitted on a column without values")
    return _select_columns(range(len(statistics)))


def _selected(step: Any) -> AffineMap:
    fitted_attribute(step, "n_features_in_")
    return _select_columns(step.get_support(indices=True).tolist())


def _select_columns(indices: Iterable[int]) -> AffineMap:
    return [single_column(Input(index)) for index in indices]


def _pipeline(pipeline: Any) -> AffineMap:
    maps = [read_at(f"[{name!r}]", map_of, step) for name, step in steps_of(pipeline)]
    if not maps:
        raise InvalidInput("this Pipeline does nothing; leave it out")
    return reduce(compose, maps)


def _columns(transformer: Any) -> AffineMap:
    result: list[Affine] = []
    for name, step, chosen in fitted_attribute(transformer, "transformers_"):
        indices = _column_indices(transformer, chosen)
        # A part without columns is not fitted.
        if indices and step != "drop":
            result += _part(transformer, name, step, indices)
    return result


def _union(union: Any) -> AffineMap:
    width = fitted_attribute(first_step(union), "n_features_in_")
    result: list[Affine] = []
    for name, step in union.transformer_list:
        if step != "drop":
            result += _part(union, name, step, range(width))
    return result


def _part(combined: Any, name: str, step: Any, indices: Sequence[int]) -> AffineMap:
    selected = _select_columns(indices)
    factor = (combined.transformer_weights or {}).get(name, 1)
    with at(f"[{name!r}]"):
        if step != "passthrough":
            selected = compose(selected, map_of(step))
        (weight,) = exact_doubles([factor], "transformer_weights")
    return [function.times(weight) for function in selected]


def _column_indices(transformer: Any, chosen: Any) -> list[int]:
    """Return the indices of the columns that a part of a transformer takes."""
    names = list(getattr(transformer, "feature_names_in_", []))
    if np.isscalar(chosen):
        chosen = [chosen]
    if not isinstance(chosen, slice) and all(isinstance(entry, str) for entry in chosen):
        return [names.index(name) for name in chosen]
    if isinstance(chosen, slice) and any(isinstance(x, str) for x in (chosen.start, chosen.stop)):
        raise InvalidInput("takes a slice of names; name the columns one by one")
    return [int(index) for index in np.arange(transformer.n_features_in_)[chosen]]


_SELECTORS = (
    "GenericUnivariateSelect", "RFE", "RFECV", "SelectFdr", "SelectFpr", "SelectFromModel",
    "SelectFwe", "SelectKBest", "SelectPercentile", "SequentialFeatureSelector",
    "VarianceThreshold",
)  # fmt: skip

_MAPS: dict[tuple[str, str], Callable[[Any], AffineMap]] = {
    ("sklearn.preprocessing", "StandardScaler"): _standard,
    ("sklearn.preprocessing", "MinMaxScaler"): _min_max,
    ("sklearn.preprocessing", "MaxAbsScaler"): _max_abs,
    ("sklearn.preprocessing", "RobustScaler"): _robust,
    ("sklearn.preprocessing", "OneHotEncoder"): _encode_categories,
    ("sklearn.preprocessing", "PolynomialFeatures"): _powers,
    ("sklearn.preprocessing", "FunctionTransformer"): _keep_columns,
    ("sklearn.decomposition", "PCA"): _components,
    ("sklearn.decomposition", "IncrementalPCA"): _components,
    ("sklearn.decomposition", "TruncatedSVD"): _components,
    ("sklearn.impute", "SimpleImputer"): _check_imputer,
    **{("sklearn.feature_selection", name): _selected for name in _SELECTORS},
    ("sklearn.compose", "ColumnTransformer"): _columns,
    ("sklearn.pipeline", "FeatureUnion"): _union,
    ("sklearn.pipeline", "Pipeline"): _pipeline,
}
