"""Gurobi, which treats logistic, tanh and log as they are and branches on them.

Both formulations have two variables for a logistic term, its v and its log-likelihood, so that the
size-limited license inside the package suffices. Differences of ``log(1 + e^v)`` are not among
them: they are slower by orders of magnitude.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import gurobipy as gp
import numpy as np
from gurobipy import GRB, nlfunc

from benchmarks.instances import Instance
from benchmarks.peers.answer import Extreme, inside
from benchmarks.peers.bounds import Bounds

__all__ = ["FORMS", "solve"]

FORMS = ("logistic", "tanh")


def solve(instance: Instance, form: str, sense: int, seconds: float) -> Extreme:
    with gp.Model(env=_environment()) as model:
        model.Params.Threads = 1
        model.Params.FuncNonlinear = 1
        model.Params.MIPGap = 0
        model.Params.MIPGapAbs = instance.gap / 2
        model.Params.TimeLimit = seconds
        x = _state(model, instance, form, sense)
        start = time.process_time()
        model.optimize()
        spent = time.process_time() - start
        point = inside(instance, [side.X for side in x]) if model.SolCount else None
        return Extreme(spent, model.Status == GRB.OPTIMAL, model.ObjBound, point)


@cache
def _environment() -> Any:
    environment = gp.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    environment.start()
    return environment


def _state(model: Any, instance: Instance, form: str, sense: int) -> list[Any]:
    kinds = [GRB.INTEGER if is_integer else GRB.CONTINUOUS for is_integer in instance.integer]
    x = [
        model.addVar(low, high, vtype=kind)
        for low, high, kind in zip(instance.lower, instance.upper, kinds, strict=True)
    ]
    logs = []
    for i, bounds in enumerate(Bounds.of(instance)):
        rows, offsets = instance.affine
        form_of_x = gp.quicksum(a * side for a, side in zip(rows[i], x, strict=True)) + offsets[i]
        log = model.addVar(*bounds.log)
        logs.append(log)
        growth = instance.growth[i]
        if not instance.logistic[i] and not bounds.clips:
            model.addConstr(log == nlfunc.log(1 + growth * form_of_x))
            continue
        v = model.addVar(*bounds.v)
        model.addConstr(v == form_of_x)
        if not instance.logistic[i]:
            share = model.addVar(0, 1)
            ends = min(bounds.v[0], -1), max(bounds.v[1], 2)
            model.addGenConstrPWL(v, share, [ends[0], 0, 1, ends[1]], [0, 0, 1, 1])
            model.addConstr(log == nlfunc.log(1 + growth * share))
        elif form == "logistic":
            model.addConstr(log == nlfunc.log(1 + growth * nlfunc.logistic(v)))
        else:
            # The odd form 2·artanh(tanh(ε/4)·tanh(u/2)) of u = v + ε/2, moved up by ε/2.
            epsilon = np.log1p(growth)
            odd = np.tanh(epsilon / 4) * nlfunc.tanh(v / 2 + epsilon / 4)
            model.addConstr(log == nlfunc.log(1 + odd) - nlfunc.log(1 - odd) + epsilon / 2)
    model.setObjective(gp.quicksum(logs), GRB.MAXIMIZE if sense > 0 else GRB.MINIMIZE)
    return x
