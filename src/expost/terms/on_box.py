"""The log-weight of one response over a box, as a function of an affine form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum

__all__ = ["BLUR", "EVERYWHERE", "Link", "ScoreTerm"]

# Within this distance of an end of a window, a form may count as inside or as outside.
BLUR = 2.0**-24
EVERYWHERE = (-math.inf, math.inf)


class Link(IntEnum):
    r"""The function that turns an affine form z into a log-weight.

    .. math:: \text{LOGISTIC:} \quad & 2 \operatorname{artanh}(\tanh(\varepsilon/4) \tanh(z/2)) \\
              \text{CLIPPED:} \quad & \log(1 + \tanh(\varepsilon/2)
                  \operatorname{clip}(z, -1, 1)) \\
              \text{PROBIT:} \quad & \log(1 + (e^\varepsilon - 1) \Phi(z)) \\
              \text{TENT:} \quad & -|z| \\
              \text{WINDOW:} \quad & \varepsilon/2 \text{ if } z \in \text{window},
                  \text{ else } -\varepsilon/2 \\
              \text{HILL:} \quad & -z^2/2
    """

    LOGISTIC = 0
    CLIPPED = 1
    PROBIT = 2
    TENT = 3
    WINDOW = 4
    HILL = 5

    __hash__ = int.__hash__  # that of an Enum is Python code, and every term is looked up


@dataclass(frozen=True, slots=True)
class ScoreTerm:
    """All that the solver needs to know about one response on a box.

    At every point x of the box, with z = Σ weights_j·x_j + offset in real numbers,

        log(the integer weight that is sampled) = constant + link(z) ± error.

    The constant is the same at all points. The error covers the rounding of the score, of the
    coefficients and of the share to doubles, the grid of integer weights, and epsilon. It is at
    most about half of epsilon. A form closer than ``BLUR`` to an end of the window may count as
    inside or as outside. Proof: docs/theory/score_terms.md.
    """

    link: Link
    epsilon: float
    weights: tuple[float, ...]
    """One per column of the box."""
    offset: float
    error: float
    window: tuple[float, float] = EVERYWHERE
    """The ends of the window; for ``Link.HILL``, the range of z on the whole box."""
    ruler: tuple[object, ...] = ()
    """How scores are rounded: where this is equal for two terms, they are rounded alike.

    Equal forms do not imply that. A form is rounded itself, and next to an end of a window one
    query may round up what another rounds down.
    """
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Worked out once, because every loss looks for equal terms.
        parts = self.link, self.epsilon, self.weights, self.offset, self.error
        object.__setattr__(self, "_hash", hash((*parts, self.window, self.ruler)))

    def __hash__(self) -> int:
        return self._hash
