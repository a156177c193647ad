"""Queries from regressions that statsmodels has fitted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from expost.domains import Categories, Domain
from expost.errors import InvalidInput, at, expect, read_at
from expost.numbers import ExactLike
from expost.queries.models._fitted_objects import is_a
from expost.queries.models._prediction import (
    Affine,
    Input,
    ModelPrediction,
    coordinate_names,
    exact_doubles,
)
from expost.queries.scores.linear import Linear
from expost.queries.scores.logistic import Logistic
from expost.queries.scores.probit import Probit

__all__ = ["from_statsmodels"]

_SUPPORTED = (
    "must be what fit() of OLS, WLS, GLS, RLM, QuantReg, Logit or Probit of statsmodels returns, "
    "or that of a GLM with a Binomial family and a Logit or Probit link, or a Gaussian family"
)
_GLM = "statsmodels.genmod.generalized_linear_model"
_FAMILIES = "statsmodels.genmod.families.family"
_LINKS = "statsmodels.genmod.families.links"

# What formulas call the column of a category: region[T.north], C(region)[north].
_CATEGORY = re.compile(r"(?:C\((\w+)(?:, *Treatment[^\[\]]*)?\)|(\w+))\[(T\.)?([^\[\]]*)\]")


def from_statsmodels(
    results: Any,
    domain: Domain,
    epsilon: ExactLike,
    *,
    features: Sequence[str] | None = None,
    range: Sequence[float] | None = None,
    clip: bool = False,
) -> Linear | Logistic | Probit:
    """Make the query for one bit about what a fitted regression predicts for the subject.

    OLS and its relatives become :func:`linear`, with ``range`` and ``clip`` as there. ``Logit``
    becomes :func:`logistic` and ``Probit`` :func:`probit`; so does a ``GLM`` with a binomial
    family and that link. Response 1 stands for outcome 1.

    Parameters are matched with the coordinates of the domain by name, and the constant column is
    the intercept. A formula's ``region[T.north]`` is the weight of a category. A regression that
    was fitted on an array goes by position in a plain box, and elsewhere needs the names of its
    ``features``, which are its columns without the constant.

    On :class:`Attributes` the columns are attributes of numbers, and the query is asked about
    these: ``from_statsmodels(results, person, 1).about("age", "visits")``.
    """
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    with at("results"):
        model = getattr(results, "model", results)
        kind = _kind(model)
        weights, intercept, column_names = _columns(results, domain)
    names = coordinate_names(column_names, features, domain, len(weights))
    inputs = [Input(index) for index, _ in enumerate(weights)]
    if names is not None:
        names, inputs = read_at("results", _categories, names, domain)
    score = Affine(dict(zip(inputs, weights, strict=True)), intercept)
    prediction = ModelPrediction(kind, score, type(model).__name__, "results")
    return prediction.query(domain, names, len(weights), epsilon, range, clip)


def _kind(model: Any) -> Literal["linear", "logistic", "probit"]:
    """Return the curve that a regression puts on its score."""
    linear = is_a(model, "statsmodels.regression.linear_model", "OLS", "WLS", "GLS")
    linear = linear or is_a(model, "statsmodels.regression.quantile_regression", "QuantReg")
    if linear or is_a(model, "statsmodels.robust.robust_linear_model", "RLM"):
        return "linear"
    if is_a(model, "statsmodels.discrete.discrete_model", "Logit"):
        return "logistic"
    if is_a(model, "statsmodels.discrete.discrete_model", "Probit"):
        return "probit"
    if not is_a(model, _GLM, "GLM"):
        raise InvalidInput(f"{_SUPPORTED}, not {type(model).__name__}")
    family, link = model.family, model.family.link
    if is_a(family, _FAMILIES, "Binomial") and is_a(link, _LINKS, "Logit"):
        return "logistic"
    if is_a(family, _FAMILIES, "Binomial") and is_a(link, _LINKS, "Probit"):
        return "probit"
    if is_a(family, _FAMILIES, "Gaussian") and is_a(link, _LINKS, "Identity"):
        return "linear"
    form = f"a GLM with family {type(family).__name__} and link {type(link).__name__}"
    raise InvalidInput(f"{_SUPPORTED}, not {form}")


def _columns(results: Any, domain: Domain) -> tuple[list[Fraction], Fraction, list[str] | None]:
    """Return the weights of all columns except the constant one, the intercept, and the names."""
    model = getattr(results, "model", None)
    if model is None:
        raise InvalidInput(f"this {type(results).__name__} is not fitted; give what fit() returns")
    if getattr(model, "offset", None) is not None or getattr(model, "exposure", None) is not None:
        raise InvalidInput("was fitted with an offset, which a query does not have")
    if model.exog_names is None:
        raise InvalidInput("its data was removed, and with it the names of its parameters")
    parameters = np.asarray(results.params)
    if parameters.ndim != 1:
        raise InvalidInput(f"has {parameters.shape[-1]} outputs; a query needs exactly 1")
    weights = exact_doubles(parameters, "params")
    names = [str(name) for name in model.exog_names]
    design_matrix = model.data.orig_exog
    # Otherwise names are made up.
    named = hasattr(design_matrix, "columns") or hasattr(design_matrix, "name")
    constant = model.data.const_idx
    intercept = Fraction(0)
    if constant is not None and not (named and names[constant] in (domain.names or ())):
        # A constant column is not always 1.
        intercept = weights.pop(constant) * Fraction(float(model.exog[0, constant]))
        del names[constant]
    return weights, intercept, names if named else None


def _categories(names: list[str], domain: Domain) -> tuple[list[str], list[Input]]:
    """Return the coordinates of columns, and the categories that they stand for in formulas."""
    sides = dict(zip(domain.names or (), domain.sides, strict=False))
    coordinates, inputs = list(names), [Input(index) for index, _ in enumerate(names)]
    labels_by_name: dict[str, dict[int, str]] = {}
    references: dict[str, int] = {}
    for index, name in enumerate(names):
        match = _CATEGORY.fullmatch(name)
        if match is not None and name not in sides:
            coordinates[index] = match[1] or match[2]
            labels_by_name.setdefault(coordinates[index], {})[index] = match[4]
            # T. stands for a difference from a category that has no column.
            references[coordinates[index]] = 1 if match[3] else 0
    for name, labels in labels_by_name.items():
        side = sides.get(name)
        wanted = side.labels if isinstance(side, Categories) else ()
        absent = [label for label in wanted if label not in labels.values()]
        if len(absent) > references[name]:
            listed = ", ".join(map(repr, absent))
            reason = f"of the categories of {name!r} it has no parameters for {listed}"
            raise InvalidInput(f"{reason}; only one that others are compared with has none")
        for index, label in labels.items():
            inputs[index] = Input(index, label, (*labels.values(), *absent))
    return coordinates, inputs
