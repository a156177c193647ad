"""The logarithm of the weight of one response over a box, as a function of an affine form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum

__all__ = ["BLUR", "EVERYWHERE", "Link", "ScoreTerm"]

# How near to an end of a window a form may be on either side of it.
BLUR = 2.0**-24
EVERYWHERE = (-math.inf, math.inf)


class Link(IntEnum):
    r"""How an affine form becomes a logarithm.

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


@dataclass(frozen=True, slots=True)
class ScoreTerm:
    """What there is to know about one response on a box.

    At every point x of the box, with z = Σ weights_j·x_j + offset in real numbers,

        log(the integer weight that is sampled) = constant + link(z) ± error.

    The constant is the same at all points. The error adds up what comes from the score and the
    coefficients in doubles, from the share in doubles, from the grid of integer weights, and from
    epsilon. It is never more than about half of epsilon. A form that is less than ``BLUR`` away
    from an end of the window may count as inside or as outside. Proof: docs/theory/score_terms.md.
    """

    link: Link
    epsilon: float
    weights: tuple[float, ...]
    """One per side of the box."""
    offset: float
    error: float
    window: tuple[float, float] = EVERYWHERE
    """Lower and upper end of a window; for ``Link.HILL``, between which z is on the whole box."""
    ruler: tuple[object, ...] = ()
    """What a window is measured with: where it is equal, scores are rounded alike.

    An equal form alone does not say so. It is rounded itself, and next to an end of a window one
    query may round up what another one rounds down.
    """
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Worked out once: equal terms are looked for whenever a loss is.
        parts = self.link, self.epsilon, self.weights, self.offset, self.error
        object.__setattr__(self, "_hash", hash((*parts, self.window, self.ruler)))

    def __hash__(self) -> int:
        return self._hash
