"""The study policy: a domain and a filter, fixed before the first response, and a nonce."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from expost.audits._plan import filter_to_json
from expost.domains import Domain, domain_from_json
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.canonical import canonical_bytes, json_text, readable_tree
from expost.files.reading import members, parse, text
from expost.filters import Filter, filter_from_json
from expost.transcript import VERSION, check_version

__all__ = ["StudyPolicy"]

_NONCE = re.compile(r"[0-9a-f]{32}")
_LONGEST = 200


@dataclass(frozen=True)
class StudyPolicy:
    """The policy of a ledger, which never changes."""

    domain: Domain
    filter: Filter
    study: str
    #: Random, so that no two ledgers have the same policy.
    nonce: str

    def __post_init__(self) -> None:
        expect(self.domain, Domain, "a FiniteSet, Attributes or a Box", "domain")
        with at("filter"):
            expect(self.filter, Filter, "a filter, such as BayesianFilter(epsilon=1)")
            _check_filter_document(self.filter)
        with at("study"):
            expect(self.study, str, "a string")
            if len(self.study) > _LONGEST:
                raise InvalidInput(f"has more than {_LONGEST} characters")
        if not _NONCE.fullmatch(self.nonce):
            raise InvalidInput("must be 32 hexadecimal digits", "nonce")

    def _tree(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "study": self.study,
            "nonce": self.nonce,
            "domain": self.domain.tree(),
            "filter": {"kind": self.filter.kind, **self.filter.tree()},
        }

    @cached_property
    def content_id(self) -> str:
        """Its digest, which is the name of the ledger in messages."""
        return hashlib.sha256(canonical_bytes(self._tree())).hexdigest()

    def to_json(self) -> str:
        """Write the policy as JSON."""
        return json_text(readable_tree(self._tree()))

    @classmethod
    def from_json(cls, document: str) -> StudyPolicy:
        """Read the document, strictly."""
        fields = members(parse(document), ("version", "study", "nonce", "domain", "filter"))
        check_version(fields["version"])
        domain = read_at("domain", domain_from_json, fields["domain"])
        filter_ = read_at("filter", filter_from_json, fields["filter"])
        return cls(domain, filter_, text(fields["study"]), text(fields["nonce"]))


def _check_filter_document(filter_: Filter) -> None:
    """Refuse a filter, or a rule, that devices and later processes cannot read."""
    try:
        readable = filter_from_json(parse(json_text(filter_to_json(filter_))))
    except InvalidInput:
        readable = None
    if readable != filter_:
        raise InvalidInput(
            f"got {type(filter_).__name__}, which the policy of a study cannot contain; expected "
            "a filter of expost with a rule of expost. Try BayesianFilter"
        )
