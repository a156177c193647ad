"""Domains: the values that a subject may have, as a finite set or as a box."""

from expost.domains.box import Box, by_name
from expost.domains.coordinates import Categories, Integers, Real, Side, categories, integers
from expost.domains.finite import FiniteSet, Point, Scalar, Value, some
from expost.domains.from_json import Domain, domain_from_json

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
    "by_name",
    "categories",
    "domain_from_json",
    "integers",
    "some",
]
