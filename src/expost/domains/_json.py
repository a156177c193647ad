"""Reads the domain of a transcript file."""

from __future__ import annotations

from typing import Any

from expost.domains._attributes import Attributes, Change, Changing
from expost.domains._box import Box
from expost.domains._coordinates import Categories, Integers, Real, Side
from expost.domains._finite_set import FiniteSet
from expost.errors import InvalidInput, at
from expost.files.reading import array, array_at, members, read_list, text

__all__ = [
    "Domain",
    "domain_from_json",
    "require_attributes",
    "require_finite",
    "require_no_box",
]

Domain = FiniteSet | Attributes | Box


def require_finite(domain: Domain, reason: str) -> FiniteSet:
    """Return a domain that has to be finite, or an error that says why."""
    if not isinstance(domain, FiniteSet):
        raise InvalidInput(reason)
    return domain


def require_no_box(domain: Domain, reason: str) -> FiniteSet | Attributes:
    """Return a domain whose values can be listed, or an error that says why."""
    if isinstance(domain, Box):
        raise InvalidInput(reason)
    return domain


def require_attributes(domain: Domain, reason: str, location: str = "") -> Attributes:
    """Return a domain that has to have attributes, or an error that says why."""
    if not isinstance(domain, Attributes):
        raise InvalidInput(reason, location)
    return domain


def domain_from_json(value: Any) -> Domain:
    """Return the domain that the field ``domain`` of a transcript file describes.

    It has exactly one of ``values``, ``points``, ``attributes`` and ``box``.

    >>> domain_from_json({"values": ["never", "sometimes", "often"]})
    FiniteSet(3 values: 'never', 'sometimes', 'often')
    """
    fields = members(value, optional=("values", "points", "attributes", "box"))
    if len(fields) != 1:
        raise InvalidInput("must have exactly one of values, points, attributes, box")
    if "values" in fields:
        return FiniteSet(array_at(fields, "values"))
    if "points" in fields:
        with at("points"):
            points = members(fields["points"], required=("names", "rows"))
            with at("rows"):
                rows = read_list(array(points["rows"]), array)
            with at("names"):
                names = [text(name) for name in array(points["names"])]
            return FiniteSet(rows, names=names)
    if "attributes" in fields:
        with at("attributes"):
            named = members(fields["attributes"], optional=None)
            return Attributes({name: _attribute_from_json(x, name) for name, x in named.items()})
    with at("box"):
        box = fields["box"]
        if isinstance(box, list):
            return Box([_side_from_json(side, f"[{i}]") for i, side in enumerate(box)])
        named = members(box, optional=None)
        return Box(**{name: _side_from_json(side, name) for name, side in named.items()})


def _side_from_json(value: Any, name: str) -> Side:
    with at(name):
        if not isinstance(value, dict):
            return Real(*_pair(value))
        fields = members(value, optional=("integers", "categories"))
        if len(fields) != 1:
            raise InvalidInput("must have exactly one of integers, categories")
        if "categories" in fields:
            with at("categories"):
                return Categories(tuple(array(fields["categories"])))
        return Integers(*_pair(fields["integers"]))


def _attribute_from_json(value: Any, name: str) -> Any:
    with at(name):
        if not isinstance(value, dict):
            return array(value)
        if "changing" in value:
            fields = members(value, required=("changing",), optional=("times", "max_step"))
            values = _attribute_from_json(fields.pop("changing"), "changing")
            if isinstance(values, Changing):
                raise InvalidInput("must be a list or integers", "changing")
            return Changing(values, Change(**fields))
        return Integers(*_pair(members(value, required=("integers",))["integers"]))


def _pair(value: Any) -> list[Any]:
    bounds = array(value)
    if len(bounds) != 2:
        raise InvalidInput("must be a pair of bounds")
    return bounds
