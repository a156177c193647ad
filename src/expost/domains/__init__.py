"""Domains: the values that a subject may have, as a finite set or as a box.

A :class:`FiniteSet` lists its values. A :class:`Box` has coordinates between bounds, and is for
queries about scores. Either one is fixed before the first response.

>>> import expost as xp
>>> xp.FiniteSet(range(11))
FiniteSet(11 values)
>>> xp.Box(age=(10, 100), sex=xp.integers(0, 1))
Box(age=[10, 100], sex=integers[0, 1])
"""

from expost.domains.box import Box, by_name
from expost.domains.coordinates import Categories, Integers, Real, Side, categories, integers
from expost.domains.finite import FiniteSet, Point, Scalar, Value, amiss, some
from expost.domains.from_json import Domain, domain_from_json, finite

__all__ = [
    "Box",
    "Categories",
    "Domain",
    "FiniteSet",
    "Integers",
    "Point",
    "Real",
    "Scalar",
    "Side",
    "Value",
    "amiss",
    "by_name",
    "categories",
    "domain_from_json",
    "finite",
    "integers",
    "some",
]
