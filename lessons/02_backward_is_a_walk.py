# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 02 Backward is a walk
#
# **Backward goes from node to node, and comes to a node only after everything that has read it; the order of the
# numbers on the tape is all that this takes.**
#
# Needs: 01. Minutes: 15.
#
# In lesson 01 the tape was one list, and backward went over all of it. minigrad has no such list: a node points to its
# inputs, and that is all. So backward starts at the loss and *walks*: from a node to what it has read, and on. In which
# order? You will try three, on minigrad's own nodes.
#
# ## A program that shares values
#
# `a` is read by `p` and by `q`, `p` by `q` and by `r`, and `q` by `r` and by the loss. Two ways that part at a value
# and meet again further on are called a **diamond**. Here are three of them, which overlap: from `a` to `q`, from `p`
# to `r`, and from `q` to the loss.

# %%
import heapq

import _drawings
import _pictures as pictures

import minigrad as mg

a = mg.tensor(2.0, requires_grad=True, name="a")
b = mg.tensor(3.0, requires_grad=True, name="b")
p = a * b
q = p + a
r = p * q
loss = r + q

print(mg.tape(loss))
name_of = {t.node: name for name, t in dict(a=a, b=b, p=p, q=q, r=r, loss=loss).items()}

# %% [markdown]
# ## What one node hands on
#
# A node of minigrad's knows its `inputs`, its `number`, and its **vjps**, which stand in the place of lesson 01's
# slopes: for each input that needs a gradient a function that takes the node's own gradient and gives the input's part
# (lesson 03 says more). This is all that a walk has to know. (`held` fetches what a vjp wants to read from the tape;
# you need not understand these two functions line by line.)

# %%
def held(source, reader):
    return source.out


def hand_on(node, gradient):
    """(input, what it gets) for each input of a node; a leaf has none."""
    vjps = () if node.is_leaf else node.needs.vjps
    return [(node.inputs[index], vjp(gradient, node, held)) for index, vjp in vjps]


print("r hands on, of a gradient of 1:", {name_of[source]: float(part) for source, part in hand_on(r.node, 1.0)})

# %% [markdown]
# ## First walk: every way down
#
# The shortest program is recursive: give a node some gradient, let it hand on its share to each input, and do the same
# there. Whatever arrives is added up, so this is right.
#
# *Before you run the next cell: there are six nodes. How often will this walk come to `a`?*

# %%
def every_way(node, gradient, visits, gradients):
    visits.append((node, gradient))
    gradients[node] = gradients.get(node, 0.0) + gradient
    for source, part in hand_on(node, gradient):
        every_way(source, part, visits, gradients)


def told(name, visits, gradients):
    print(f"{name}: {len(visits)} visits: {' '.join(name_of[node] for node, _ in visits)}")
    print("    gradients:", {name_of[node]: float(gradients[node]) for node in (a.node, b.node)})


visits_of_every_way, gradients_of_every_way = [], {}
every_way(loss.node, 1.0, visits_of_every_way, gradients_of_every_way)
told("every way", visits_of_every_way, gradients_of_every_way)

# %% [markdown]
# It visits a node once for each *way* from the loss down to it. Where diamonds stand on top of each other, each one
# doubles the ways. Let `x = x + x` run n times: a new `x` reads the old one twice, so these are n of the smallest
# diamonds there are. Count the visits.
#
# *Before you run the next cell: how many visits for n diamonds? And for fifty?*

# %%
def diamonds(n):
    x = mg.tensor(1.0, dtype="float64", requires_grad=True)
    for _ in range(n):
        x = x + x
    return x


counted = {}
for n in (1, 2, 4, 8, 12):
    visits = []
    every_way(diamonds(n).node, 1.0, visits, {})
    counted[n] = len(visits)
    print(f"diamonds: {n:2}   nodes: {n + 1:2}   visits: {counted[n]:4}")

doubling = all(count == 2 ** (n + 1) - 1 for n, count in counted.items())
years = (2**51 - 1) / 1e6 / (365 * 24 * 3600)
print(f"2^(n+1) - 1 in all of them: {doubling}; fifty diamonds, at a million visits a second: {years:.0f} years")

# %% [markdown]
# The nodes have 1, 2, 4, … visits, each twice as many as the one above it; that is the sum. And diamonds are not rare.
# A *residual* network adds the input of each block to its output, `x + f(x)`: a diamond in every block.
#
# ## Second walk: depth-first, each node once
#
# Then visit each node only once, you say: whoever has been there does not go on from there again. The number of visits
# is fine now.
#
# *Before you run the next cell: the walk goes from the loss to `r`, and from there to `p` at once. What has arrived at
# `p` by then, and what has not?*

# %%
def depth_first(node, gradient, visits, gradients):
    gradients[node] = gradients.get(node, 0.0) + gradient
    if node not in [visited for visited, _ in visits]:
        visits.append((node, gradient))
        for source, part in hand_on(node, gradient):
            depth_first(source, part, visits, gradients)


visits_of_depth_first, gradients_of_depth_first = [], {}
depth_first(loss.node, 1.0, visits_of_depth_first, gradients_of_depth_first)
told("depth-first, once", visits_of_depth_first, gradients_of_depth_first)

# %% [markdown]
# Six visits, and wrong gradients, without any error. `p` has handed on what came from `r`, and the rest, which comes
# through `q`, arrived when `p` was done. `q` did the same: it had no part from the loss yet. Such a gradient is
# *incomplete*. The rule that was broken:
#
# > A node hands on its gradient only when all that have read it have handed on theirs.
#
# ## Third walk: youngest first
#
# Who has read a node? The node does not say; it only knows its inputs. But you know the order in which things were
# computed. It is in the numbers:
#
# 1. A node is younger than its inputs. So all that have read a node are younger than it.
# 2. Of the nodes that *wait* (some gradient has arrived), take the youngest.
# 3. Nodes that have not been reached yet are inputs of waiting ones, or inputs of inputs. So they are older. Nobody
#    who is still to come has read the youngest: its gradient is complete.
#
# What gives you the youngest again and again, while others come in, is a **heap**: Python's `heapq` keeps the smallest
# in front, so push the number with a minus.
#
# *Before you run the next cell: write down the order of the six visits.*

# %%
def youngest_first(root, show=False):
    visits, gradients, heap = [], {root: 1.0}, [(-root.number, root)]
    while heap:
        node = heapq.heappop(heap)[1]
        visits.append((node, gradients[node]))
        for source, part in hand_on(node, gradients[node]):
            if source not in gradients:  # the first part to arrive: from now on it waits
                gradients[source] = 0.0
                heapq.heappush(heap, (-source.number, source))
            gradients[source] += part
        if show:
            waiting = [f"{name_of[w]} with {gradients[w]:g}" for _, w in sorted(heap)]
            print(f"  {name_of[node]:4} hands on {gradients[node]:g}; now wait: {', '.join(waiting) or 'none'}")
    return visits, gradients


visits_of_youngest_first, gradients_of_youngest_first = youngest_first(loss.node, show=True)
told("youngest first", visits_of_youngest_first, gradients_of_youngest_first)

# %% [markdown]
# Six visits, and the gradients of the first walk. No node knows its readers, and nobody has counted them: the numbers
# are enough.
#
# The picture shows the three walks over the same tape. The one that never turns back to the right is the right one.

# %%
walks = {
    "every way": visits_of_every_way,
    "depth-first, once": visits_of_depth_first,
    "youngest first": visits_of_youngest_first,
}
_drawings.walks(walks, gradients_of_youngest_first, name_of, pictures.path("02-walks.svg"))

# %% [markdown]
# ![Three walks over the tape, visit by visit from top to bottom: every way goes to and fro in many visits, depth-first
# hands on too little at p, youngest first goes from right to left once](pictures/02-walks.svg)
#
# ## The same walk in minigrad
#
# `loss.backward()` is this loop. The generator `mg.steps` gives you its steps one by one; leaves come at the end.
#
# *Before you run the next cell: which nodes will the steps of kind "op" show, and with which gradients?*

# %%
ours = [(name_of[node], float(gradient)) for node, gradient in visits_of_youngest_first if not node.is_leaf]
theirs, leaf_gradients = [], {}
for step in mg.steps(loss):
    if step.kind == "op":
        theirs.append((name_of[step.node], step.grad.item()))
    else:
        leaf_gradients[name_of[step.node]] = step.grad.item()

print("ours:    ", ours)
print("minigrad:", theirs)
print("leaves:  ", leaf_gradients)
print("the same:", ours == theirs)

# %% [markdown]
# ## Broken and repaired: too deep
#
# There is a right way to walk with recursion: sort the nodes first, depth-first, each one *after* all that it has read;
# then go over the sorted list from its end. Small engines do it so. Each node is visited once, and the order is right.

# %%
def sorted_by_recursion(root):
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            for source in node.inputs:
                visit(source)
            order.append(node)

    visit(root)
    return order[::-1]


print("sorted:", *[name_of[node] for node in sorted_by_recursion(loss.node)])

# %% [markdown]
# (The steps above have freed what the tape held for backward. The links from node to node are still there.)
#
# *Before you run the next cell: what happens on a chain of 20,000 nodes, to this one and to the heap?*

# %%
DEPTH = 20_000
x = mg.tensor(1.0, dtype="float64", requires_grad=True)
y = x
for _ in range(DEPTH):
    y = y * 1.0001

try:
    sorted_by_recursion(y.node)
    recursion_failed = False
except RecursionError as error:
    recursion_failed = True
    print("sorted by recursion:", type(error).__name__)

visits, gradients = youngest_first(y.node)
steps_of_backward = sum(1 for step in mg.steps(y) if step.kind == "op")
print(f"youngest first: {len(visits)} visits, gradient {gradients[x.node]:.6f}")
print(f"mg.steps:       {steps_of_backward} steps,  gradient {x.grad.item():.6f}, by formula {1.0001**DEPTH:.6f}")

# %% [markdown]
# Each call of `visit` waits for the calls below it, and Python allows about a thousand of them. One can raise that
# limit, until the memory for calls is used up. The repair is to have no recursion: a heap is as long as the number of
# waiting nodes (here one), however deep the network is. In all of minigrad's engine nothing calls itself as deep as
# your network is.
#
# This matters for the course. A checkpoint (lesson 06) puts *fresh* nodes on the tape in the middle of backward. They
# get new numbers, and so they are the youngest of all. The heap takes them next, and the loop does not change.
#
# ## In PyTorch and in JAX this is called
#
# In PyTorch a node (`tensor.grad_fn`) also has a sequence number, counted up in forward, and among the nodes that are
# ready the engine takes the one with the highest first. When a node is ready it knows by counting: before it starts, it
# counts for each node how many gradients will arrive, and a node is ready when the last of them has. In JAX there are
# no such nodes: `jax.vjp` *traces* the function into a list of equations, and goes over that list from its end, as you
# did in lesson 01.
#
# ## Exercises
#
# `lessons/exercises/ex02_walk.py`, three functions; `make check N=02`.
#
# 1. `order_of_sweep`: the numbers of the nodes, in the order in which backward comes to them.
# 2. `ways`: how many ways lead from a node down to a leaf, even if there are more than you could ever walk?
# 3. `is_good_order`: would a backward in this order be right?
#
# ## Questions
#
# 1. Why is a depth-first walk that visits each node once wrong, although it visits every node?
# 2. Why does the youngest of the waiting nodes have a complete gradient? Which property of the tape is used?
# 3. What is in the heap at most while backward walks down a chain of a thousand layers without any branches?
