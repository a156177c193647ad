"""Many subjects at once, in memory: the same verbs as a session."""

from expost.panel._box_state import Search
from expost.panel._panel import Panel
from expost.panel._results import Bounds, Decisions, Replies

__all__ = ["Bounds", "Decisions", "Panel", "Replies", "Search"]
