"""What is estimated: values, and the finer ones that have to be estimated together with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from expost._types import Indices
from expost.answers import Answers
from expost.domains import Attributes, Box, FiniteSet, Part, Variable, some
from expost.errors import InvalidInput, at
from expost.estimation.atoms import Atoms, SetAtoms
from expost.estimation.records import record_atoms
from expost.estimation.support import PointAtoms, Points, read_support
from expost.queries.about import read_about

__all__ = ["Scope", "scope_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """Values, and the atoms of which each is made."""

    domain: FiniteSet
    atoms: Atoms
    where: Indices
    """For each atom, the place of its value."""
    model: str | None = None
    """What the atoms are, where they are not the values themselves."""

    def alike(self, groups: Indices) -> Indices:
        """A number per value, the same for those that are made of the same ``groups`` of atoms."""
        made: list[list[int]] = [[] for _ in range(len(self.domain))]
        for value, group in zip(self.where.tolist(), groups.tolist(), strict=True):
            made[value].append(group)
        numbers: dict[tuple[int, ...], int] = {}
        return np.array([numbers.setdefault(tuple(sorted(own)), len(numbers)) for own in made])


def scope_of(answers: Answers, about: Any, step: Any, support: Any = None) -> Scope:
    """What an estimate from answers is on: all values, the attributes that are named, or points."""
    names: tuple[str, ...] | None = None
    if about is not None:
        names, step = read_about([about] if isinstance(about, str) else about, step)
    elif step is not None:
        raise InvalidInput("say about= which attribute, too", "at")
    domain = answers.domain
    if support is not None and not isinstance(domain, Box):
        raise InvalidInput("only a distribution on a box needs one; leave it out", "support")
    match domain:
        case FiniteSet():
            return _set_scope(domain, names, step)
        case Attributes():
            return _attributes_scope(answers, domain, names, step)
        case Box():
            return _box_scope(domain, names, support)
        case _:
            assert_never(domain)


def _set_scope(domain: FiniteSet, names: tuple[str, ...] | None, step: int | None) -> Scope:
    atoms = SetAtoms(domain)
    if names is None:
        return Scope(domain, atoms, np.arange(len(domain)))
    if not isinstance(domain, Part):
        raise InvalidInput("a finite set has no attributes; leave it out", "about")
    if step is not None:
        raise InvalidInput("leave it out: these answers are about one step", "at")
    with at("about"):
        part = domain.part(names)
    axes = np.unravel_index(np.arange(len(domain)), domain.sizes)
    named_axes = [axes[domain.about.index(name)] for name in names]
    return Scope(part, atoms, np.ravel_multi_index(named_axes, part.sizes).astype(np.intp))


def _attributes_scope(
    answers: Answers, domain: Attributes, names: tuple[str, ...] | None, step: int | None
) -> Scope:
    if names is None:
        raise InvalidInput(
            f"of which attributes? Take answers.about(…) some of {some(domain.names)}, or say "
            "about=… to estimate them together with all others",
            "domain",
        )
    with at("about"):
        part = domain.part(names)
    wanted = domain.variables(names, step)
    variables = _queried_variables(answers, domain)
    for name, wanted_step in wanted:
        if (name, wanted_step) not in variables:
            when = "" if wanted_step is None else f" at step {wanted_step}"
            raise InvalidInput(f"nobody answered about {name}{when}", "about")
    atoms = record_atoms(domain, variables)
    return Scope(part, atoms, atoms.where(wanted), atoms.in_words())


def _box_scope(domain: Box, names: tuple[str, ...] | None, support: Any) -> Scope:
    if names is not None:
        raise InvalidInput("take answers.about(…) of a coordinate with categories", "about")
    if support is None:
        raise InvalidInput(
            "must be a finite set: the values of a box cannot be listed; or give a support, "
            "points of which the distribution is to be a mixture",
            "domain",
        )
    with at("support"):
        samples = read_support(support, domain)
    where = np.arange(len(samples))
    return Scope(Points(samples), PointAtoms(samples), where, f"{len(samples):,} points")


def _queried_variables(answers: Answers, domain: Attributes) -> Sequence[Variable]:
    queries = [answers.queries[key] for key, _ in answers.given]
    variables = dict.fromkeys(v for query in queries for v in query.on(domain).variables)
    return sorted(variables, key=lambda v: (domain.names.index(v[0]), v[1] or 0))
