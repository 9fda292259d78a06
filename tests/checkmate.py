"""Rematerialisation as an integer program, for any small graph: an outside opinion on chains. Needs SciPy.

Jain et al. 2020, "Checkmate: Breaking the memory wall with optimal tensor rematerialization", arXiv:1910.02653. The
nodes 0 … n-1 of a graph, in topological order, are forward and backward ops alike. Time has n stages; stage t ends
with the first run of node t. The unknowns are

    R[t, i]   node i is run in stage t                           0 or 1
    S[t, i]   the value of node i is kept from before stage t    0 or 1
    F[t, i, k]  the value of node i is let go in stage t, right after node k   0 or 1
    U[t, k]   what is held in stage t while node k runs          from 0 to the budget

and the sum of cost[i] R[t, i] is to be least.
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class Graph:
    """For each node: the nodes that it reads, all of them earlier, the size of its value, and what running it costs."""

    reads: list
    size: list
    cost: list

    @property
    def nodes(self):
        return len(self.reads)

    @property
    def users(self):
        """For each node: the nodes that read it."""
        users = [[] for _ in self.reads]
        for node, sources in enumerate(self.reads):
            for source in sources:
                users[source].append(node)
        return users


def training_graph(layers, sizes=None, costs=None, skips=()):
    """Forward x_1 … x_L and backward g_L … g_1 of a chain of layers. The input x_0 is always there and costs nothing.

    x_i reads x_{i-1}, and for each (j, i) of `skips` x_j as well; g_i reads g_{i+1} and whatever x_i read. x_L and the
    gradients have size 0, and backward costs 0.

    sizes, costs   of x_1 … x_{L-1}, and of running x_1 … x_L; 1 if not given
    """
    forward_reads = [[i - 1] * (i > 0) + [j - 1 for j, layer in skips if layer == i + 1] for i in range(layers)]
    backward_reads = []
    for i in reversed(range(layers)):
        following = [layers + len(backward_reads) - 1] if backward_reads else [layers - 1]
        backward_reads.append(following + [source for source in forward_reads[i] if source not in following])
    size = list(sizes or [1] * (layers - 1)) + [0] * (layers + 1)
    cost = list(costs or [1] * layers) + [0] * layers
    return Graph(forward_reads + backward_reads, size, cost)


def cheapest(graph, budget):
    """The least cost of running all nodes with at most `budget` held at any moment, or None if that cannot be."""
    from scipy.optimize import Bounds, milp

    program = Program(graph, budget)
    cost = np.zeros(program.variables)
    for (_, node), variable in program.run.items():
        cost[variable] = graph.cost[node]
    bounds = Bounds(np.zeros(program.variables), program.upper_bounds())
    answer = milp(cost, integrality=program.integrality(), bounds=bounds, constraints=program.constraints())
    return round(answer.fun) if answer.success else None


class Program:
    """The variables and constraints. A constraint is ({variable: coefficient}, least, most)."""

    def __init__(self, graph, budget):
        self.graph, self.budget, self.variables, self.rows = graph, budget, 0, []
        nodes = range(graph.nodes)
        # A stage t has nodes 0 … t: later ones are not run in it, and what is kept from before it is earlier than t.
        self.run = {(t, i): self.variable() for t in nodes for i in range(t + 1)}
        self.keep = {(t, i): self.variable() for t in nodes for i in range(t)}
        self.free = {(t, i, k): self.variable() for t in nodes for k in range(t + 1) for i in {*graph.reads[k], k}}
        self.binaries = self.variables
        self.held = {(t, k): self.variable() for t in nodes for k in range(t + 1)}
        for t in nodes:
            self.add({self.run[t, t]: 1}, 1, 1)
            self.sources_are_at_hand(t)
            self.kept_was_there(t)
            self.memory(t)
        for key in self.free:
            self.freed_when_of_no_use(*key)

    def variable(self):
        self.variables += 1
        return self.variables - 1

    def add(self, coefficients, least, most):
        self.rows.append((coefficients, least, most))

    def sources_are_at_hand(self, t):
        """What runs has each of its sources, run in this stage or kept from before."""
        for node in range(t + 1):
            for source in self.graph.reads[node]:
                self.add({self.run[t, node]: 1, self.run[t, source]: -1, **self.kept(t, source, -1)}, -np.inf, 0)

    def kept_was_there(self, t):
        """What is kept has been run in the stage before, or kept from before that."""
        for node in range(t):
            before = {self.run[t - 1, node]: -1, **self.kept(t - 1, node, -1)}
            self.add({self.keep[t, node]: 1, **before}, -np.inf, 0)

    def kept(self, t, node, coefficient):
        return {self.keep[t, node]: coefficient} if (t, node) in self.keep else {}

    def memory(self, t):
        """What is held while node k runs: what is kept, with node 0; then each node's value, less what is let go."""
        size = self.graph.size
        kept = {self.keep[t, i]: -size[i] for i in range(t)}
        self.add({self.held[t, 0]: 1, self.run[t, 0]: -size[0], **kept}, 0, 0)
        for k in range(t):
            freed = {self.free[t, i, k]: size[i] for i in {*self.graph.reads[k], k}}
            self.add({self.held[t, k + 1]: 1, self.held[t, k]: -1, self.run[t, k + 1]: -size[k + 1], **freed}, 0, 0)

    def freed_when_of_no_use(self, t, i, k):
        """F[t, i, k] = 1 just if k is run, i is not kept for the next stage, and nobody later in this one reads i."""
        later = [j for j in self.graph.users[i] if k < j <= t]
        count = 2 + len(later)
        reasons = {self.run[t, k]: -1, **self.kept(t + 1, i, 1), **{self.run[t, j]: 1 for j in later}}
        # reasons against it: 1 + sum(reasons) of at most `count`; 1 - F <= that <= count (1 - F)
        self.add({self.free[t, i, k]: 1, **reasons}, 0, np.inf)
        self.add({self.free[t, i, k]: count, **reasons}, -np.inf, count - 1)

    def upper_bounds(self):
        bounds = np.ones(self.variables)
        bounds[self.binaries :] = self.budget
        return bounds

    def integrality(self):
        return np.arange(self.variables) < self.binaries

    def constraints(self):
        from scipy.optimize import LinearConstraint
        from scipy.sparse import lil_array

        matrix = lil_array((len(self.rows), self.variables))
        for row, (coefficients, _, _) in enumerate(self.rows):
            for variable, coefficient in coefficients.items():
                matrix[row, variable] = coefficient
        return LinearConstraint(matrix.tocsr(), [least for _, least, _ in self.rows], [most for *_, most in self.rows])
