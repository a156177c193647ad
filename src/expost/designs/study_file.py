"""The file of a study, version 1: strict JSON."""

from __future__ import annotations

import os
from typing import Any

from expost.designs.study import Study
from expost.domains import domain_from_json
from expost.errors import at
from expost.files.kinds import STUDY, explain_wrong_kind
from expost.files.reading import array, members, parse, text
from expost.files.regular import read_text
from expost.transcript import check_version

__all__ = ["load_study", "study_from_json"]

_REQUIRED = ("version", "domain", "subjects", "epsilon", "goals")
_OPTIONAL = ("population", "delta", "arrival", "rounds")


def load_study(path: str | os.PathLike[str], *, population: Any = None) -> Study:
    """Read the file of a study; docs/reference/studies.md describes it.

    ``population`` is taken in place of the one that the file has, or has not.
    """
    with at(os.fspath(path), ": "):
        return study_from_json(read_text(path), population=population)


def study_from_json(document: str, *, population: Any = None) -> Study:
    """The same from its text.

    >>> study_from_json(
    ...     '{"version": 1, "domain": {"values": [0, 1, 2]}, "subjects": 1000, "epsilon": "1",'
    ...     ' "goals": [{"share": "value >= 1"}, {"mean": "value"}]}'
    ... )
    Study(1,000 subjects, 2 goals, sequential, budget 1)
    """
    with explain_wrong_kind(STUDY, document):
        fields = members(parse(document), required=_REQUIRED, optional=_OPTIONAL).copy()
    check_version(fields.pop("version"))
    with at("domain"):
        domain = domain_from_json(fields.pop("domain"))
    with at("goals"):
        array(fields["goals"])
    if "arrival" in fields:
        with at("arrival"):
            text(fields["arrival"])
    if population is not None:
        fields["population"] = population
    study = Study(domain, **fields)
    _ = study.model  # whatever is wrong with goals or population shows here
    return study
