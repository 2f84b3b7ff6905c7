"""Bounds from below what serving a snapshot's requests on an empty cluster must cost.

Reads one JSON object a line, {"snapshot": {...}}, and answers each with {"bound": dollars an hour}. The bound is that
of the linear programme over all patterns, a pattern being what one pod of a group can hold: choose how many pods of
each pattern, fractions allowed, so that every request is served, at the least price. Patterns are generated as they
are needed: given what each request is worth, an integer programme for each group finds its most valuable pattern.

The answer is a bound even before the last pattern is found (Farley, 1990): worths divided by the largest ratio of a
pattern's value to its price are worths at which no pattern pays, so the demand costs at least what it is worth by them.
"""

import json
import sys

import highspy
import numpy as np

# Pattern generation ends when the bound is this close to the linear programme's value.
CLOSE = 1e-4
MOST_ROUNDS = 400


def matches(selector, labels):
    """Tells whether labels satisfy a selector of plain values, the only ones that instances have."""
    return all(labels.get(key) == value for key, value in selector.items())


class Group:
    """One group, with the integer programme of its most valuable pattern."""

    def __init__(self, group, requests, resources):
        self.price = group["price"]
        labels = group.get("labels") or {}
        # In units of its own size each resource is 1, which is kind to the solver.
        sizes = {r: float(group["resources"][r]) for r in resources if group["resources"].get(r)}
        self.most = np.zeros(len(requests))
        self.shares = np.zeros((len(sizes), len(requests)))
        for i, request in enumerate(requests):
            needs = {r: float(v) for r, v in request["resources"].items() if v}
            selectors = request.get("labelSelectors") or []
            if any(v > sizes.get(r, 0) for r, v in needs.items()):
                continue
            if selectors and not any(matches(s, labels) for s in selectors):
                continue
            self.shares[:, i] = [needs.get(r, 0) / size for r, size in sizes.items()]
            self.most[i] = min([request["count"]] + [int(size / needs[r] + 1e-9) for r, size in sizes.items() if r in needs])
        self.programme = None

    def limit(self, worths):
        """Bounds the value of every pattern by each resource alone."""
        best = float(worths @ self.most)
        for shares in self.shares:
            free = worths @ np.where(shares > 0, 0, self.most)
            ratios = np.divide(worths, shares, out=np.zeros_like(worths), where=(shares > 0) & (self.most > 0))
            best = min(best, float(free + ratios.max(initial=0)))
        return best

    def best_pattern(self, worths):
        """Returns the most valuable pattern and a bound on the value of every pattern."""
        if self.programme is None:
            self.programme = self.new_programme()
        count = len(worths)
        self.programme.changeColsCost(count, np.arange(count, dtype=np.int32), worths)
        self.programme.run()
        if self.programme.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"no best pattern: {self.programme.getModelStatus()}")
        pattern = np.round(np.array(self.programme.getSolution().col_value))
        return pattern, max(self.programme.getInfo().mip_dual_bound, float(worths @ pattern))

    def new_programme(self):
        h = quiet()
        h.changeObjectiveSense(highspy.ObjSense.kMaximize)
        h.setOptionValue("mip_rel_gap", 1e-6)
        count = len(self.most)
        h.addVars(count, np.zeros(count), self.most)
        columns = np.arange(count, dtype=np.int32)
        h.changeColsIntegrality(count, columns, np.full(count, highspy.HighsVarType.kInteger))
        for shares in self.shares:
            h.addRow(-highspy.kHighsInf, 1, count, columns, shares)
        return h


def quiet():
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("threads", 1)
    return h


class Master:
    """The linear programme over the patterns known so far."""

    def __init__(self, requests):
        self.h = quiet()
        nothing = np.array([], dtype=np.int32), np.array([])
        for request in requests:
            self.h.addRow(request["count"], highspy.kHighsInf, 0, *nothing)

    def add(self, price, pattern):
        used = np.flatnonzero(pattern).astype(np.int32)
        self.h.addCol(price, 0, highspy.kHighsInf, len(used), used, pattern[used])

    def solve(self):
        """Returns the value and what one of each request is worth."""
        self.h.run()
        if self.h.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"no optimum: {self.h.getModelStatus()}")
        return self.h.getInfo().objective_function_value, np.maximum(np.array(self.h.getSolution().row_dual), 0)


def bound(snapshot):
    if snapshot.get("nodes") or snapshot.get("head") or snapshot.get("pendingGangRequests"):
        raise ValueError("the bound is for requests on an empty cluster")
    requests = snapshot["pendingRequests"]
    resources = sorted({name for r in requests for name in r["resources"]})
    groups = [Group(g, requests, resources) for g in snapshot["groups"]]
    master = Master(requests)
    for group in groups:
        for i in np.flatnonzero(group.most):
            master.add(group.price, np.where(np.arange(len(requests)) == i, group.most, 0))
    best = 0.0
    for _ in range(MOST_ROUNDS):
        value, worths = master.solve()
        overpaid = 1.0
        for group in groups:
            if group.limit(worths) <= group.price:
                continue
            pattern, most = group.best_pattern(worths)
            overpaid = max(overpaid, most / group.price)
            if worths @ pattern > group.price * (1 + 1e-9):
                master.add(group.price, pattern)
        best = max(best, value / overpaid)
        if best >= value * (1 - CLOSE):
            return best
    raise RuntimeError(f"the bound {best} is still below {value} after {MOST_ROUNDS} rounds")


def main():
    for line in sys.stdin:
        print(json.dumps({"bound": bound(json.loads(line)["snapshot"])}), flush=True)


if __name__ == "__main__":
    main()
