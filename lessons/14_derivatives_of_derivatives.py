# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 14 Derivatives of derivatives
#
# **A backward that is recorded is a program like any other and has gradients, also through checkpoints; but what it
# reads stays on the tape, so a checkpoint saves memory around a derivative, and none inside it.**
#
# Needs: 03, 06, 12. Minutes: 25.
#
# Some losses have a derivative in them. A penalty on slopes keeps a network smooth, Newton's method asks how a
# gradient changes, and an equation of physics speaks of accelerations. To train with such a loss one needs gradients
# of gradients. You will get them, find out what they cost in memory, and let a network find the motion of a pendulum.

# %%
import _pictures as pictures
import numpy as np
from numpy.polynomial import Polynomial

import minigrad as mg
from minigrad.view import curves

LAYERS, EVERY, WIDTH, ROWS = 24, 6, 8, 128
rng = np.random.default_rng(14)
weights = [
    mg.tensor(rng.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH), requires_grad=True, name=f"w{i}")
    for i in range(LAYERS)
]
points = rng.standard_normal((ROWS, WIDTH))

# %% [markdown]
# ## A gradient without a history
#
# The slope of tanh is 1 - tanh². To get the slope of *that*, the same way should do: differentiate the gradient.
#
# Before you run the next cell: `mg.grad` gives the gradient as a tensor. Does the tape know how it was computed?

# %%
x = mg.tensor(0.5, dtype="float64", requires_grad=True)
(slope,) = mg.grad(mg.tanh(x), x)
try:
    mg.grad(slope, x)
except mg.NoGradientError as error:
    no_history = str(error)
    print("NoGradientError:", no_history)

# %% [markdown]
# It does not. (That is the "nothing that it was computed from does" of the message: the tensor has come out of a
# backward, without a history.) A backward runs its vjps on plain arrays, as nearly always that is all one wants. If you
# ask for more, with `create_graph=True`, the vjps get tensors, and every op in them is recorded. They are made of the
# same ops as everything else, so there is nothing else to write.

# %%
(slope,) = mg.grad(mg.tanh(x), x, create_graph=True)
print(mg.tape(slope))
(curvature,) = mg.grad(slope, x)
t = np.tanh(0.5)
print(f"\nslope {slope.item():.6f}, by hand {1 - t * t:.6f}; its slope {curvature.item():.6f}, by hand "
      f"{-2 * t * (1 - t * t):.6f}")  # fmt: skip

# %% [markdown]
# Look at the tape. The lines after tanh are the vjp of tanh, op by op. They read tanh's output, so it stays.
#
# And again? The derivatives of tanh are polynomials in tanh. NumPy can differentiate polynomials, which makes an
# independent check.
#
# Before you run the next cell: the tape of the first derivative has seven lines. How many has that of the sixth?

# %%
polynomial, lengths, differences = Polynomial([0, 1]), [], []
y = mg.tanh(x)
for order in range(1, 7):
    (y,) = mg.grad(y, x, create_graph=True)
    polynomial = polynomial.deriv() * Polynomial([1, 0, -1])
    lengths.append(len(mg.tape(y)))
    differences.append(abs(y.item() - polynomial(t)))
    print(f"derivative {order}: {y.item():+.6f}, as a polynomial {polynomial(t):+.6f}, {lengths[-1]:3} lines of tape")

# %% [markdown]
# Each one differentiates all that the one before has recorded. So high orders are dear, and in practice one stops at
# two or three.
#
# ## How a gradient changes
#
# A second derivative of a loss in n weights is a matrix of n × n numbers, the Hessian H. One seldom wants the matrix.
# A product H v says how the gradient changes when the weights move along v, and it is one more backward: of the
# number gradient · v.
#
# Below, the network is a chain of layers `tanh(h @ w)`, with a checkpoint around every six of them or none. `call`
# says which. H is taken for the first matrix alone.
#
# Before you run the next cell: how many numbers does v have, and how many H? Will it be the same bits with
# checkpoints, as in lesson 06?


# %%
def stretch(h, first):
    """The layers from number `first` on, as many as are in a checkpoint."""
    for w in weights[first : first + EVERY]:
        h = mg.tanh(h @ w)
    return h


def plain(fn, *args):
    """No checkpoint."""
    return fn(*args)


def network(x, call):
    """One number for each row of x."""
    for first in range(0, LAYERS, EVERY):
        x = call(stretch, x, first)
    return x.sum(axis=1)


def loss(call):
    y = network(mg.tensor(points), call)
    return (y * y).sum()


def hessian_times(direction, call):
    """How the gradient with respect to the first matrix changes along a direction."""
    (gradient,) = mg.grad(loss(call), weights[0], create_graph=True)
    (change,) = mg.grad((gradient * direction).sum(), weights[0])
    return change.numpy()


def moved_gradient(step):
    """The same gradient where the first matrix has been moved by a step."""
    before = weights[0].numpy()
    weights[0].assign_(before + step)
    (gradient,) = mg.grad(loss(plain), weights[0])
    weights[0].assign_(before)
    return gradient.numpy()


u, v = rng.standard_normal((2, WIDTH, WIDTH))
h_v, h_u = hessian_times(v, plain), hessian_times(u, plain)
quotient = (moved_gradient(1e-5 * v) - moved_gradient(-1e-5 * v)) / 2e-5
hessian_error = abs(h_v - quotient).max() / abs(h_v).max()
checkpoint_error = abs(hessian_times(v, mg.checkpoint) - h_v).max() / abs(h_v).max()
print(f"{v.size} weights, so the Hessian has {v.size**2:,} numbers; its product with v has {h_v.size}")
print("difference to a difference quotient, relative:", "below 1e-6" if hessian_error < 1e-6 else hessian_error)
print("u · Hv and v · Hu agree:", np.isclose((u * h_v).sum(), (v * h_u).sum()))
print("with checkpoints the same to rounding:", bool(checkpoint_error < 1e-13))

# %% [markdown]
# H v is what a difference of two gradients approximates. And u · H v is v · H u, as it must be: it does not matter in
# which order one differentiates, so H is symmetric.
#
# Through checkpoints it is right to *rounding*. In a first backward you have had the same bits with and without
# checkpoints. Here several gradients meet at one value: those from the recorded backward, and those from forward. A
# replay changes the order in which they arrive and are added up, and a sum of floats depends on its order.
#
# ## What it costs
#
# Now a loss with a derivative in it. The penalty wants the network's slope with respect to its input, a vector, to have
# length 1 at each point. (The number in one row depends on that row alone. So the gradient of the *sum* of all rows has
# the slope at each point in its rows.) For the gradients of the weights, we differentiate that slope.
#
# Before you run the next cell: for a loss of first order, the four checkpoints save more than half of the live
# activations. For the penalty, will it be more, as much, or less?


# %%
def penalty(x, call):
    """(|slope|² - 1)² for each row of x."""
    (slope,) = mg.grad(network(x, call).sum(), x, create_graph=True)
    return ((slope * slope).sum(axis=1) - 1) ** 2


def input_leaf(rows=points):
    return mg.tensor(rows, requires_grad=True, name="x")


def first_order(call):
    return network(input_leaf(), call).sum()


def second_order(call):
    return penalty(input_leaf(), call).sum()


def measure(forward, *args):
    """(tracer, gradients of the weights) of a forward and a backward."""
    for w in weights:
        w.grad = None
    with mg.Tracer() as tracer:
        forward(*args).backward()
    return tracer, [w.grad.numpy() for w in weights]


runs, gradients = {}, {}
for order in (first_order, second_order):
    for call in (plain, mg.checkpoint):
        key = f"{order.__name__}, {call.__name__}"
        runs[key], gradients[key] = measure(order, call)
        print(f"{key:25} {runs[key].peak_activations:3} live activations at the peak, "
              f"{runs[key].replayed_ops:3} ops replayed")  # fmt: skip

# %% [markdown]
# Nothing at all. Why? The first backward replays the stretches, one after another, and lets go of nothing: it is
# recorded, and its ops have vjps that will read what was replayed. When it ends, all is there that a plain run would
# have kept. The replays were for nothing.
#
# The rule of lesson 05 holds here too. The tape keeps what a vjp will read. Now the first backward is part of the
# tape, and most of the tape at that.
#
# ## Break it, and repair it: around, not inside
#
# A checkpoint around the *whole* penalty drops the forward and the recorded backward together. In its replay all of
# it comes back at once; so one for everything would save nothing either. But the rows of x have nothing to do with
# each other. Cut them into four parts, and only one part is there at a time.
#
# And without any cutting there is the budget of lesson 12. The recorded backward is tape, and can be evicted.
#
# Before you run the next cell: by what factor will the bytes go down for four parts? Which of the two ways will run
# more ops again?


# %%
def in_parts(parts):
    """The sum of the penalty, each part of the rows in a checkpoint of its own."""
    total = 0
    for rows in np.split(points, parts):
        total = total + mg.checkpoint(penalty, input_leaf(rows), plain).sum()
    return total


runs["around four parts"], gradients["around four parts"] = measure(in_parts, 4)
stored = runs["second_order, plain"].peak_activation_bytes
with mg.memory_budget(stored // 4):
    runs["a budget"], gradients["a budget"] = measure(second_order, plain)

names = {"second_order, plain": "storing all", "second_order, checkpoint": "inside", "around four parts": "around",
         "a budget": "a budget"}  # fmt: skip
rounding = {}
for key, name in names.items():
    pairs = zip(gradients[key], gradients["second_order, plain"], strict=True)
    rounding[name] = max(abs(a - b).max() / abs(b).max() for a, b in pairs)
    same = "the same bits" if rounding[name] == 0 else "the same to rounding" if rounding[name] < 1e-13 else "WRONG"
    print(f"{name:12} {runs[key].peak_activation_bytes:8,} bytes at the peak, {runs[key].replayed_ops:4} ops run "
          f"again, gradients {same}")  # fmt: skip
curves.plot_runs({name: runs[key] for key, name in names.items()}, pictures.path("14-around.svg"), "bytes", True)

# %% [markdown]
# ![Live bytes over four runs of one double backward: storing all and checkpoints inside climb to the same peak; around
# has four low teeth; a budget runs level and then rises to a little less than half of the peak](pictures/14-around.svg)
#
# The picture shows all live bytes, each run from its beginning to its end. (The lines printed above count activations
# alone, so they are lower.) The checkpoints inside begin low, and come to the same peak. Around, four low plateaus come
# first, where each part is computed and dropped, and then four teeth, where each part is replayed and differentiated.
# Far more ops run again: all of a part's forward and of its recorded backward. The budget evicts only what it must, so
# it is cheaper. And it gives the bits of storing all, since it does not change the order in which anything is added
# up. But it limits what the *tape* holds; the gradients on their way through the second backward come on top.
#
# ## A check for second derivatives
#
# Of an op of your own, the first derivative may be right and the second wrong. The vjp below gets `x` as
# an array in a first backward, and as a tensor in a recorded one. `np.asarray` makes it an array in both.
#
# `mg.gradcheck` (lesson 03) compares a gradient with a difference quotient. `mg.gradgradcheck` does that with the
# gradient of a gradient. Before you run the next cell: which of the two will notice?


# %%
@mg.op
def cube(x):
    return x * x * x


@cube.vjp("x")
def cube_wrt_x(g, x):
    return g * 3 * np.asarray(x) ** 2


numbers = mg.tensor(np.array([0.5, -1.0, 2.0]), requires_grad=True)
first_check = mg.gradcheck(cube, [numbers])
try:
    mg.gradgradcheck(cube, [numbers])
except mg.GradientMismatch as error:
    second_check = str(error)
print("gradcheck:", first_check)
print("gradgradcheck:", second_check)

# %% [markdown]
# The second one is a gradcheck of backward itself. It sees that the gradient depends on x and that the tape does not
# know. The repair is to leave x what it is: operators and ops of minigrad take arrays and tensors alike.


# %%
@cube.vjp("x")
def cube_wrt_x_again(g, x):
    return g * 3 * x * x


repaired_check = mg.gradcheck(cube, [numbers]) and mg.gradgradcheck(cube, [numbers])
print("both checks:", repaired_check)

# %% [markdown]
# ## A pendulum
#
# The angle u of a pendulum obeys u'' = -sin(u). We let a small network be the angle, as a function of time, and ask
# that the equation holds at thirty times. This is called a physics-informed network. No data about the motion is used.
#
# The form `SPEED * t + t * t * network(t)` starts at 0 with the right speed, whatever the network does. Each row of
# `t` is a time by itself. So, as above, the gradient of the sum of all angles has the speed at each time in its rows,
# and the same once more gives the acceleration.

# %%
SPEED, rng = 1.5, np.random.default_rng(14)
times = np.linspace(0, 4, 30)[:, None]
hidden, shift, out = parameters = [
    mg.tensor(rng.standard_normal(shape) * size, requires_grad=True)
    for shape, size in (((1, 16), 1.5), ((16,), 1.5), ((16, 1), 0.1))
]


def angle(t):
    return SPEED * t + t * t * (mg.tanh((t / 2 - 1) @ hidden + shift) @ out)


def misfit(t):
    """u'' + sin(u) at each time: 0 where the equation holds."""
    u = angle(t)
    (speed,) = mg.grad(u.sum(), t, create_graph=True)
    (acceleration,) = mg.grad(speed.sum(), t, create_graph=True)
    return (acceleration + mg.sin(u)).flatten()


def flat(arrays):
    return np.concatenate([array.numpy().ravel() for array in arrays])


def rows_of(errors, retain_graph):
    """The gradient of each error with respect to all parameters: a matrix with a row for each."""
    return np.array([flat(mg.grad(error, parameters, retain_graph=retain_graph)) for error in errors])


# %% [markdown]
# We want each of the thirty errors to be 0, which is a system of equations. Newton's method for such a system needs
# the gradient of each of them. That is thirty backwards, and all thirty go over the same tape.
#
# Before you run the next cell: what will the second of them find?

# %%
try:
    rows_of(misfit(mg.tensor(times, requires_grad=True)), retain_graph=False)
except mg.GraphFreedError as error:
    freed = str(error)
    print("GraphFreedError:", freed)

# %% [markdown]
# The first one has let go of what it passed. `retain_graph=True` keeps it. (`create_graph=True` did so too, without
# being asked, since a recorded backward is there to be differentiated.)
#
# A step of the method puts straight lines in the place of the equations. There are more parameters than equations, so
# many moves solve them; the step takes the smallest, and damps it. This is the method of Levenberg and Marquardt. A
# step that makes things worse is taken back, and the damping rises. What matters in the next cell is `equations`; you
# may skim the rest. `exact_angles` is there for comparison, and the training does not see it.


# %%
def move(step):
    for parameter in parameters:
        here, step = step[: parameter.size], step[parameter.size :]
        parameter.assign_(parameter.numpy() + here.reshape(parameter.shape))


def equations():
    """(the errors, the gradient of each)"""
    errors = misfit(mg.tensor(times, requires_grad=True))
    return errors.numpy(), rows_of(errors, retain_graph=True)


def exact_angles(fine=100):
    """The angles by the classical method of Runge and Kutta, in small steps."""

    def change(state):
        return np.array([state[1], -np.sin(state[0])])

    state, found, dt = np.array([0.0, SPEED]), [0.0], (times[1, 0] - times[0, 0]) / fine
    for _ in times[1:]:
        for _ in range(fine):
            a = change(state)
            b = change(state + dt / 2 * a)
            c = change(state + dt / 2 * b)
            state = state + dt / 6 * (a + 2 * b + 2 * c + change(state + dt * c))
        found.append(state[0])
    return np.array(found)


errors, rows = equations()
damping, exact, distances = 1.0, exact_angles(), []
for step in range(31):
    distances.append(abs(angle(mg.tensor(times)).numpy().ravel() - exact).max())
    if step % 5 == 0:
        print(f"step {step:2}: largest error of the equation {abs(errors).max():.0e}, of the angle {distances[-1]:.0e}")
    update = -rows.T @ np.linalg.solve(rows @ rows.T + damping * np.eye(len(errors)), errors)
    move(update)
    new_errors, new_rows = equations()
    if (new_errors**2).sum() < (errors**2).sum():
        errors, rows, damping = new_errors, new_rows, damping / 3
    else:
        move(-update)
        damping *= 4

# %% [markdown]
# From an equation alone the network has found the motion, to three digits or more. Three derivatives are stacked in it:
# two with respect to time, and one with respect to the parameters.
#
# ## In PyTorch and in JAX
#
# - `torch.autograd.grad(y, x, create_graph=True)` is the same call, `retain_graph` means the same, and a gradient
#   without history "does not require grad". `torch.autograd.gradcheck` and `gradgradcheck` do what ours do.
# - Double backward works through `torch.utils.checkpoint` with `use_reentrant=False`. With `True` it refuses
#   `torch.autograd.grad`. As here, checkpoints inside a recorded backward save nothing: we counted the tensors that
#   are saved, with version 2.13.
# - In JAX one writes `jax.grad(jax.grad(f))`; there is nothing to ask for, as a gradient is a function that is traced
#   like any other. The products with the Hessian are `jax.jvp(jax.grad(f), (x,), (v,))[1]`: forward mode over
#   reverse. There `jax.checkpoint` goes on to hold in the backward that is differentiated, so that it does save inside.
#
# ## Exercises
#
# The blanks are in `lessons/exercises/ex14_second_order.py`; `make check N=14` says how far you are.
#
# 1. `second_derivative`: f''(x) at many points at once.
# 2. `hessian_product`: H v for several parameters together, without H.
# 3. `newton_step`: where a Newton step leads, in a few dimensions.
#
# ## Questions
#
# 1. Why does the tape keep the output of tanh longer when backward is recorded?
# 2. Somebody trains with a gradient penalty, has a checkpoint around every block, and sees no effect on memory. What
#    do you advise?
# 3. Why could `gradcheck` not find the error in `cube_wrt_x`?
