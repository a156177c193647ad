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

from expost.domains.attributes import Attribute, Attributes, Part, Record, Variable
from expost.domains.box import Box, by_name
from expost.domains.changing import Change, changing
from expost.domains.coordinates import Categories, Integers, Real, Side, categories, integers
from expost.domains.finite import FiniteSet, Point, Scalar, Value, amiss, some
from expost.domains.freezing import Frozen, freeze
from expost.domains.from_json import Domain, domain_from_json, finite, records

__all__ = [
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
    "amiss",
    "by_name",
    "categories",
    "changing",
    "domain_from_json",
    "finite",
    "freeze",
    "integers",
    "records",
    "some",
]
