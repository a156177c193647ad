"""Many subjects at once, in memory: the same verbs as a session."""

from expost.panel.panel import Panel
from expost.panel.results import Bounds, Decisions, Replies
from expost.panel.searching import Search

__all__ = ["Bounds", "Decisions", "Panel", "Replies", "Search"]
