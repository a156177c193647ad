"""SCIP, which knows exp and log but neither the logistic function nor tanh.

``exponentials`` puts the logarithms of a share and of its complement side by side,
v = p - q with e^p + e^q = 1, so that beside log one convex function is all there is to enclose.
``logit`` inverts the logistic function, v = log(share) - log(1 - share). Writing it down as it is,
with an e^-v of up to 10^20 and more, ends in numerical trouble.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from pyscipopt import Model, exp, log, quicksum

from benchmarks.instances import Instance
from benchmarks.peers.answer import Extreme, inside
from benchmarks.peers.bounds import Bounds

__all__ = ["FORMS", "solve"]

FORMS = ("exponentials", "logit")
WALL_CLOCK = 2


def solve(instance: Instance, form: str, sense: int, seconds: float) -> Extreme:
    model = Model()
    model.hideOutput()
    model.setParam("timing/clocktype", WALL_CLOCK)
    model.setParam("limits/time", seconds)
    model.setParam("limits/gap", 0)
    model.setParam("limits/absgap", instance.gap / 2)
    model.setParam("lp/threads", 1)
    x = _state(model, instance, form, sense)
    start = time.process_time()
    try:
        model.optimize()
    except Exception:  # its own class for an LP that it gives up on is this one
        return Extreme(time.process_time() - start, False, sense * math.inf, None)
    spent = time.process_time() - start
    finished = model.getStatus() in ("optimal", "gaplimit")
    point = None
    if model.getNSols():
        best = model.getBestSol()
        point = inside(instance, [model.getSolVal(best, side) for side in x])
    return Extreme(spent, finished, model.getDualbound(), point)


def _state(model: Any, instance: Instance, form: str, sense: int) -> list[Any]:
    sides = zip(instance.lower.tolist(), instance.upper.tolist(), instance.integer, strict=True)
    x = [
        model.addVar(lb=low, ub=high, vtype="I" if is_integer else "C")
        for low, high, is_integer in sides
    ]
    rows, offsets = instance.affine
    logs = []

    def variable(bounds: tuple[float, float]) -> Any:
        return model.addVar(lb=bounds[0], ub=bounds[1])

    for i, bounds in enumerate(Bounds.of(instance)):
        v, share, term = map(variable, (bounds.v, bounds.share, bounds.log))
        row = zip(rows[i].tolist(), x, strict=True)
        model.addCons(v == quicksum(a * side for a, side in row if a) + float(offsets[i]))
        model.addCons(term == log(1 + float(instance.growth[i]) * share))
        logs.append(term)
        if bounds.clips:
            model.addCons(share == (abs(v) - abs(v - 1) + 1) / 2)
        elif not instance.logistic[i]:
            model.addCons(share == v)
        elif form == "logit":
            remainder = variable((_sigmoid(-bounds.v[1]), _sigmoid(-bounds.v[0])))
            model.addCons(share + remainder == 1)
            model.addCons(v == log(share) - log(remainder))
        else:
            low, high = bounds.v
            p = variable((_log_sigmoid(low), _log_sigmoid(high)))
            q = variable((_log_sigmoid(-high), _log_sigmoid(-low)))
            model.addCons(v == p - q)
            model.addCons(share == exp(p))
            model.addCons(1 - share == exp(q))
    model.setObjective(quicksum(logs), "maximize" if sense > 0 else "minimize")
    return x


def _log_sigmoid(v: float) -> float:
    return -float(np.logaddexp(0, -v))


def _sigmoid(v: float) -> float:
    return math.exp(_log_sigmoid(v))
