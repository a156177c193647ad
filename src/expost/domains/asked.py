"""What asks a domain: something that does one thing on a set, another on records, on a box.

A domain knows its own kind, so nobody else has to find it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from expost.domains.attributes import Attributes
    from expost.domains.box import Box
    from expost.domains.finite import FiniteSet

__all__ = ["ByKind"]


class ByKind(Protocol):
    """Something that is there on every kind of domain, or refuses some of them."""

    def on_set(self, domain: FiniteSet, /) -> Any: ...
    def on_attributes(self, domain: Attributes, /) -> Any: ...
    def on_box(self, domain: Box, /) -> Any: ...
