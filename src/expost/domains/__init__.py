"""Domains: the values that a subject may have, as a finite set, as records or as a box.

A :class:`FiniteSet` lists its values. :class:`Attributes` are records of several finite attributes,
some of which may change. A :class:`Box` has coordinates between bounds, and is for queries about
scores. Each is fixed before the first response.

>>> import expost as xp
>>> xp.FiniteSet(range(11))
FiniteSet(11 values: 0, 1, 2, 3, 4, 5, 6, 7 and 3 more)
>>> xp.Box(age=(10, 100), sex=xp.integers(0, 1))
Box(age=[10, 100], sex=integers[0, 1])
"""

from expost.domains._attributes import (
    MOST_COMBINATIONS,
    Attribute,
    Attributes,
    Change,
    Part,
    Record,
    Variable,
    changing,
)
from expost.domains._box import Box, format_coordinates
from expost.domains._coordinates import Categories, Integers, Real, Side, categories, integers
from expost.domains._finite_set import (
    FiniteSet,
    Point,
    Scalar,
    Value,
    coordinates_of,
    describe_mismatch,
    join_names,
)
from expost.domains._freezing import Frozen, freeze, freeze_columns
from expost.domains._json import (
    Domain,
    domain_from_json,
    require_attributes,
    require_finite,
    require_no_box,
)

__all__ = [
    "MOST_COMBINATIONS",
    "Attribute",
    "Attributes",
    "Box",
    "Categories",
    "Change",
    "Domain",
    "FiniteSet",
    "Frozen",
    "Integers",
    "Part",
    "Point",
    "Real",
    "Record",
    "Scalar",
    "Side",
    "Value",
    "Variable",
    "categories",
    "changing",
    "coordinates_of",
    "describe_mismatch",
    "domain_from_json",
    "format_coordinates",
    "freeze",
    "freeze_columns",
    "integers",
    "join_names",
    "require_attributes",
    "require_finite",
    "require_no_box",
]
