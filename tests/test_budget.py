"""Under a memory budget the tape never holds more, whatever the graph, and gradients are the same to the last bit."""

import random
import threading

import numpy as np
import pytest

import minigrad as mg
from minigrad.budget import eviction, memory_budget
from minigrad.engine.modes import local
from tests.test_random_programs import Program, plain

ACTIVATION = 48  # bytes of one activation of the reference chain
PLENTY = 10**9


def chain_under(net, activations, **how):
    """(tracer, budget, gradients) of the reference chain when so many activations fit."""
    for weight in net.weights:
        weight.grad = None
    with mg.Tracer() as tracer, mg.memory_budget(activations * ACTIVATION, **how) as budget:
        net.loss = mg.checkpoint_sequential(net.layers, mg.schedules.store_all(), net.x).sum()
        net.loss.backward()
    return tracer, budget, [weight.grad.numpy() for weight in net.weights]


# ---- On the reference chain --------------------------------------------------------------------------

REPLAYS = {  # activations that fit -> (fewest replays possible, with dtr, with lru)
    6: (217, 270, 931),
    10: (135, 148, 495),
    14: (86, 112, 329),
    19: (81, 81, 225),
    20: (80, 80, 210),
}


@pytest.mark.parametrize("activations", REPLAYS)
def test_a_hundred_layers_and_the_neighbourhood(chain, same_bits, activations):
    net = chain(100)
    _, gradients = net.run(mg.schedules.store_all())
    replays = {}
    for evict in ("dtr", "local", "lru", "size", "random"):
        tracer, budget, ours = chain_under(net, activations, evict=evict)
        same_bits(ours, gradients)
        assert tracer.peak_activations == activations
        assert tracer.peak_activation_bytes == budget.peak_bytes == budget.limit
        assert tracer.live_activations == budget.held_bytes == 0
        assert tracer.replayed_ops == budget.rematerialised
        replays[evict] = tracer.replayed_ops
    fewest, dtr, lru = REPLAYS[activations]
    assert replays["dtr"] == dtr and replays["lru"] == lru
    assert fewest <= dtr < replays["random"] < lru
    assert replays["local"] == lru  # on a chain of equal layers the one is the other


def test_what_fits_is_not_evicted(chain, same_bits):
    net = chain(100)
    _, gradients = net.run(mg.schedules.store_all())
    tracer, budget, ours = chain_under(net, 100)
    same_bits(ours, gradients)
    assert (budget.evictions, budget.rematerialised, tracer.peak_activations) == (0, 0, 100)


def test_a_thousand_layers_in_two_roots_of_them(chain, same_bits):
    net = chain(1000)
    _, gradients = net.run(mg.schedules.store_all())
    tracer, _, ours = chain_under(net, 64)
    same_bits(ours, gradients)
    assert tracer.peak_activations == 64 and tracer.replayed_ops < 1000


def test_the_same_seed_evicts_the_same(chain):
    net = chain(50)
    runs = [chain_under(net, 9, evict="random", seed=seed)[1].rematerialised for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


# ---- On any graph ------------------------------------------------------------------------------------


def run_program(seed, checkpoint, how, limit, evict):
    """(gradients, what hooks saw, tracer, budget) of a random program and its backward under a budget."""
    with mg.Tracer() as tracer, mg.memory_budget(limit, evict=evict, seed=seed) as budget:
        program = Program(seed, checkpoint)
        if not program.outputs:
            return None
        loss = sum((mg.tanh(t).sum() for t in program.outputs[-3:]), start=mg.tensor(np.array(0.0)))
        program.outputs = None
        if how == "twice":
            loss.backward(retain_graph=True)
        if how == "second derivative":
            found = mg.grad(loss, program.leaves, create_graph=True, allow_unused=True)
            square = [(g * g).sum() for g in found if g is not None and g.requires_grad]
            if square:
                sum(square).backward(retain_graph=True)
            del found, square
        loss.backward()
        assert len(mg.saved(loss)) == tracer.live_activations == budget.held_bytes == 0
    gradients = [leaf.grad.numpy() for leaf in program.leaves if leaf.grad is not None]
    hooked = [gradient for place in program.hooked for gradient in place]
    return gradients, hooked, tracer, budget


@pytest.mark.parametrize("how", ["once", "twice", "second derivative"])
@pytest.mark.parametrize("checkpoint", [plain, mg.checkpoint])
def test_random_programs_give_the_same_bits_or_an_error(same_bits, checkpoint, how):
    choose, kept, evicted, refused = random.Random(how), 0, 0, 0
    for seed in range(60):
        reference = run_program(seed, checkpoint, how, PLENTY, "dtr")
        if reference is None:
            continue
        peak = reference[3].peak_bytes
        assert reference[2].peak_activation_bytes == peak
        limit, evict = choose.randrange(peak // 4, peak), choose.choice(["dtr", "local", "lru", "size", "random"])
        try:
            ours = run_program(seed, checkpoint, how, limit, evict)
        except mg.BudgetError as error:
            assert limit < error.least
            refused += 1
        else:
            same_bits(ours[0], reference[0])
            same_bits(ours[1], reference[1])
            assert ours[2].peak_activation_bytes <= limit
            kept += 1
            evicted += ours[3].evictions > 0
        assert (local.context.budget, local.context.tracer, local.context.phase) == (None, None, "forward")
    assert kept > 15 and evicted > 10 and refused > 5


def u_net(x, weights):
    """Down and up again, with a skip from each level down to the same level up: views, several consumers."""
    skips, h = [], x
    for w in weights:
        h = mg.tanh(h @ w)
        skips.append(h)
        h = h.reshape(4, -1).T.reshape(8, 8)
    for w in reversed(weights):
        h = mg.sigmoid(h.T @ w) + skips.pop()
        h = mg.cat([h[:4] * 2, h[4:]])
    return (h * h).sum()


def under(limit, forward, leaves, **how):
    """(tracer, budget, gradients) of forward() and its backward under a budget."""
    for leaf in leaves:
        leaf.grad = None
    mg.manual_seed(1)
    with mg.Tracer() as tracer, mg.memory_budget(limit, **how) as budget:
        loss = forward()
        loss.backward()
        assert tracer.live_activations == budget.held_bytes == 0
    return tracer, budget, [leaf.grad.numpy() for leaf in leaves]


@pytest.mark.parametrize("evict", ["dtr", "local", "lru", "size", "random"])
def test_skips_views_and_several_consumers(parameter, same_bits, evict):
    x, weights = parameter(8, 8), [parameter(8, 8, seed=i) for i in range(1, 7)]
    _, free, reference = under(PLENTY, lambda: u_net(x, weights), [x, *weights])
    for share in (0.8, 0.6, 0.4):
        limit = int(free.peak_bytes * share)
        tracer, budget, ours = under(limit, lambda: u_net(x, weights), [x, *weights], evict=evict)
        same_bits(ours, reference)
        assert budget.evictions > 0 and tracer.peak_activation_bytes <= limit


def transformer():
    """Blocks with attention and dropout, and a batch norm, whose statistics must move once: (forward, leaves, norm)."""
    mg.manual_seed(0)
    blocks = [mg.nn.TransformerBlock(16, 2, dropout=0.1) for _ in range(4)]
    norm, head = mg.nn.BatchNorm1d(16), mg.nn.Linear(16, 5)
    x = mg.randn(3, 7, 16)
    leaves = [leaf for module in (*blocks, norm, head) for leaf in module.parameters()]

    def forward():
        h = x
        for block in blocks:
            h = block(h)
        h = norm(h.reshape(21, 16)) + mg.dropout(h.reshape(21, 16), 0.5)
        return mg.cross_entropy(head(h), mg.tensor(np.arange(21) % 5))

    return forward, leaves, norm


@pytest.mark.parametrize("evict", ["dtr", "local", "lru", "size", "random"])
def test_a_transformer_with_dropout_and_batch_norm_in_half_of_its_memory(same_bits, evict):
    forward, leaves, norm = transformer()
    _, free, reference = under(PLENTY, forward, leaves)
    once = norm.running_mean.numpy().copy()
    norm.running_mean.assign_(np.zeros(16))
    limit = free.peak_bytes // 2
    tracer, budget, ours = under(limit, forward, leaves, evict=evict)
    same_bits(ours, reference)
    same_bits([norm.running_mean.numpy()], [once])
    assert tracer.peak_activation_bytes <= limit and budget.rematerialised > 0
    assert int(norm.num_batches_tracked) == 2  # forward passes; what has run again does not count


def test_views_go_and_come_together(parameter):
    x = parameter(8, 8)
    with mg.memory_budget(2 * 512, evict="lru") as budget:
        a = mg.tanh(x)
        loss = (a.T * a.reshape(8, 8)).sum()  # three nodes hold a's memory
        assert budget.held_bytes == 512 and len(mg.saved(loss)) == 3
        b = mg.exp(mg.exp(mg.cos(x)))  # two buffers more
        assert budget.evictions == 1 and len(mg.saved(loss)) == 0
        loss.backward()
        report = budget.report().splitlines()
        rows = [line.split() for line in report]
        assert ["exp", "1", "0"] in rows and ["tanh", "1", "1"] in rows and max(map(len, report)) <= 100
    b.sum().backward()


# ---- Ways to go backward -----------------------------------------------------------------------------


def tanhs(x, count=10):
    for _ in range(count):
        x = mg.tanh(x * 1.5)
    return x.sum()


def test_backward_twice_by_steps_and_to_a_node_in_between(parameter, same_bits):
    x = parameter(8)
    reference = mg.grad(tanhs(x), [x])
    with mg.Tracer() as tracer, mg.memory_budget(4 * 64) as budget:
        loss = tanhs(x)
        assert budget.evictions == 6
        loss.backward(retain_graph=True)
        assert 0 < budget.held_bytes <= budget.limit
        same_bits([x.grad.numpy()], reference)
        same_bits(mg.grad(loss, [x], retain_graph=True), reference)
        x.grad = None
        kinds = [step.kind for step in mg.steps(loss)]
    assert kinds == ["op"] * 21 + ["leaf"]
    same_bits([x.grad.numpy()], reference)
    assert tracer.peak_activation_bytes <= budget.limit and budget.held_bytes == 0


def oldest_first(storage):
    return storage.number


def youngest_first(storage):
    return -storage.number


def test_what_a_vjp_reads_is_on_the_tape_all_together(parameter):
    """When the evicted v comes back, u stays, although it is the oldest."""
    nodes, seen = [], []

    @mg.op
    def product(a, b):
        return a * b

    @product.vjp("a")
    def product_wrt_a(g, a, b):
        seen.append([node.out is not None for node in nodes])
        return g * b

    @product.vjp("b")
    def product_wrt_b(g, a):
        return g * a

    x = parameter(8)
    with mg.memory_budget(3 * 64, evict=oldest_first) as budget:
        v, u = mg.tanh(mg.tanh(mg.sin(x))), mg.tanh(x)
        nodes += [u.node, v.node]
        loss = product(u, v).sum()
        rest = tanhs(x, 2)
        assert budget.evictions == 2 and u.node.out is not None and v.node.out is None
        loss.backward()
        nodes.clear()
    assert seen == [[True, True]]
    del rest


def test_what_an_op_retains_together_stays_together(parameter):
    x = parameter(8)
    with mg.memory_budget(3 * 64, evict=youngest_first):
        old = [mg.exp(x), mg.exp(x)]
        u, v = mg.sin(x), mg.cos(x)
        product = u * v
        assert u.node.out is not None and v.node.out is not None
    del old, product


def test_second_derivatives_and_anomaly_mode(parameter, same_bits):
    x = parameter(8)

    def second():
        (first,) = mg.grad(tanhs(x), [x], create_graph=True)
        return mg.grad((first * first).sum(), [x])

    with mg.memory_budget(PLENTY) as free:
        reference = second()
    with mg.Tracer() as tracer, mg.memory_budget(free.peak_bytes // 3) as budget, mg.detect_anomaly():
        same_bits(second(), reference)
    assert budget.evictions > 0 and tracer.peak_activation_bytes <= budget.limit


def test_a_gradient_inside_a_checkpoint(parameter, same_bits):
    x = parameter(8)

    def penalised():
        def fn(t):
            inner = mg.tanh(t * 2)
            (slope,) = mg.grad(inner.sum(), [t], create_graph=True)
            return mg.exp(inner) * slope

        h = mg.sin(tanhs(x, 4) + x)
        return (mg.checkpoint(fn, h) * h).sum()

    _, free, reference = under(PLENTY, penalised, [x])
    tracer, budget, ours = under(free.peak_bytes * 2 // 3, penalised, [x])
    same_bits(ours, reference)
    assert budget.evictions > 0 and tracer.peak_activation_bytes <= budget.limit


def test_after_the_block_values_come_back_within_the_same_limit(parameter, same_bits):
    x = parameter(8)
    reference = mg.grad(tanhs(x), [x])
    with mg.memory_budget(4 * 64) as budget:
        loss = tanhs(x)
    assert budget.rematerialised == 0
    loss.backward()
    same_bits([x.grad.numpy()], reference)
    assert budget.rematerialised > 0 and budget.peak_bytes == 4 * 64
    assert (local.context.phase, local.context.budget, local.context.tracer) == ("forward", None, None)


def test_what_was_swept_after_the_block_makes_room_for_the_next_block(parameter):
    x, constant = parameter(8), mg.tensor(np.arange(8.0))
    with mg.memory_budget(2 * 64) as budget:
        loss = (x * constant).sum() + mg.tanh(x).sum()
    loss.backward()
    assert budget.held_bytes == 64  # nobody has told that the graph holds the constant no longer
    with budget:
        rest = mg.exp(mg.tanh(x)).sum()
        assert (budget.held_bytes, budget.evictions) == (2 * 64, 0)
    del rest


def test_after_the_block_what_was_swept_makes_room(parameter, same_bits):
    x, constant = parameter(8), mg.tensor(np.arange(8.0))
    reference = mg.grad(tanhs(x, 5) + (x * constant).sum(), [x])
    with mg.memory_budget(2 * 64):
        loss = tanhs(x, 5) + (x * constant).sum()
    loss.backward()  # the product, which holds the constant, is swept first, and `loss` keeps its node alive
    same_bits([x.grad.numpy()], reference)


# ---- Checkpoints under a budget ----------------------------------------------------------------------


@pytest.mark.parametrize("policy", [None, mg.policies.save_ops("exp")])
def test_the_output_of_a_checkpoint_is_evicted_and_its_body_run_again(parameter, same_bits, policy):
    x = parameter(8)

    def forward():
        h = mg.checkpoint(lambda t: mg.tanh(mg.exp(mg.sin(t))), x, policy=policy)
        h = h * h
        return tanhs(h, 4)

    _, free, reference = under(PLENTY, forward, [x])
    tracer, budget, ours = under(free.peak_bytes - 2 * 64, forward, [x], evict="lru")
    same_bits(ours, reference)
    assert budget.figures().evicted["checkpoint"] == 1
    assert budget.figures().run_again["sin"] == (policy is None)
    assert tracer.peak_activation_bytes <= budget.limit


def test_two_outputs_of_a_checkpoint_come_back_in_one_run_of_its_body(parameter, same_bits):
    x = parameter(8)

    def forward():
        u, v = mg.checkpoint(lambda t: ((s := mg.sin(t)) * 2.0, mg.cos(s)), x)
        product = u * v
        return tanhs(x, 4) + product.sum()

    _, free, reference = under(PLENTY, forward, [x])
    _, budget, ours = under(free.peak_bytes - 3 * 64, forward, [x], evict="lru")
    same_bits(ours, reference)
    assert budget.figures().evicted["checkpoint"] == 2 and budget.figures().run_again["sin"] == 1


def test_an_output_whose_checkpoint_reads_a_constant_in_forward_alone_can_be_evicted(parameter, same_bits):
    x = parameter(8)

    def forward():
        constant = mg.tensor(np.arange(8.0))  # no vjp reads it; under a budget the boundary keeps it all the same
        h = mg.checkpoint(lambda t: mg.sin(mg.exp(t) + 1.0) + constant, x)
        return tanhs(h * h, 4)

    _, free, reference = under(PLENTY, forward, [x])
    _, budget, ours = under(free.peak_bytes - 2 * 64, forward, [x], evict="lru")
    same_bits(ours, reference)
    assert budget.figures().evicted["checkpoint"] == 1


@pytest.mark.parametrize("schedule", [3, mg.schedules.triangular(), mg.schedules.uniform(4)], ids=str)
def test_a_schedule_inside_a_budget(chain, same_bits, schedule):
    net = chain(36)
    _, gradients = net.run(mg.schedules.store_all())
    for weight in net.weights:
        weight.grad = None
    with mg.Tracer() as tracer, mg.memory_budget(8 * ACTIVATION) as budget:
        mg.checkpoint_sequential(net.layers, schedule, net.x).sum().backward()
    same_bits([weight.grad.numpy() for weight in net.weights], gradients)
    assert tracer.peak_activations <= 8 and tracer.live_activations == budget.held_bytes == 0


def test_outputs_that_are_not_kept_inside_a_budget(parameter, same_bits):
    x = parameter(8)

    def forward():
        h = x
        for _ in range(4):
            h = mg.checkpoint(lambda t: mg.tanh(mg.exp(mg.sin(t))), h, keep_output=False)
            h = h * h
        return tanhs(h, 5)

    _, free, reference = under(PLENTY, forward, [x])
    tracer, budget, ours = under(free.peak_bytes - 2 * 64, forward, [x])
    same_bits(ours, reference)
    assert budget.evictions > 0 and tracer.peak_activation_bytes <= budget.limit


def test_offloaded_boundaries_inside_a_budget(parameter, same_bits):
    x = parameter(8)

    def forward():
        h = x
        for _ in range(4):
            h = mg.checkpoint(lambda t: mg.tanh(mg.exp(mg.sin(t))), h, offload=True)
        return tanhs(h * h, 3)

    _, free, reference = under(PLENTY, forward, [x])
    _, budget, ours = under(free.peak_bytes - 64, forward, [x])
    same_bits(ours, reference)
    assert budget.evictions > 0


# ---- What counts, and what cannot be evicted ---------------------------------------------------------


def test_data_and_constants_count_and_stay(parameter):
    w = parameter(8)
    with mg.memory_budget(4 * 64) as budget:
        product = w * mg.tensor(np.ones(8))
        assert budget.held_bytes == 64
        shifted = product + mg.tensor(np.ones(8))  # no vjp reads it, but the addition may have to run again
        assert budget.held_bytes == 128
        loss = tanhs(shifted, 3)
        assert (budget.held_bytes, budget.evictions) == (4 * 64, 1)
        loss.backward()
        assert budget.held_bytes == 0 and w.grad is not None
    del product


def test_parameters_and_views_of_them_do_not_count(parameter):
    w, v = parameter(8, 8), parameter(8, 8, seed=1)
    with mg.memory_budget(0) as budget:
        (w.T @ v.reshape(8, 8)).sum().backward()
    assert budget.peak_bytes == 0 and w.grad is not None


def test_what_was_computed_before_the_block_counts_when_it_is_read_and_stays(parameter, same_bits):
    x = parameter(8)
    reference = mg.grad(tanhs(mg.exp(x) + mg.sin(x), 5), [x])
    before, other = mg.exp(x), mg.sin(x)
    with mg.memory_budget(4 * 64) as budget:
        loss = tanhs(before + other, 5)
        assert budget.evictions == 1 and before.node.out is not None
        squared = before * before
        assert budget.evictions == 2 and budget.held_bytes == 4 * 64
        same_bits(mg.grad(loss, [x]), reference)
    del squared


def test_an_array_that_outlives_its_node_does_not_count(parameter):
    x = parameter(8)
    with mg.memory_budget(64) as budget:
        array = mg.exp(x).data
        assert budget.held_bytes == 0
        other = mg.exp(x)
        assert (budget.held_bytes, budget.evictions) == (64, 0)
    del array, other


def test_views_can_be_evicted_when_some_of_them_are_dead(parameter):
    x = parameter(8)
    with mg.memory_budget(64) as budget:
        a = mg.exp(x)
        one, other = a.reshape(2, 4), a.reshape(4, 2)
        products = [one * one, other * other]
        del products[0], one
        rest = mg.exp(x)
        assert budget.evictions == 1
    del a, other, products, rest


# ---- When it does not fit ----------------------------------------------------------------------------


def test_an_impossible_budget_is_an_error_that_leads_to_the_least_one(parameter, same_bits):
    x, weights = parameter(8, 8), [parameter(8, 8, seed=i) for i in range(1, 7)]
    _, free, reference = under(PLENTY, lambda: u_net(x, weights), [x, *weights])
    limit, refusals = 1, []
    while limit < free.peak_bytes:
        try:
            tracer, _, ours = under(limit, lambda: u_net(x, weights), [x, *weights])
            break
        except mg.BudgetError as error:
            refusals.append(str(error))
            assert limit < error.least and f"{error.least:,} bytes" in str(error)
            limit = error.least
            assert all(leaf.grad is None for leaf in (x, *weights))
    same_bits(ours, reference)
    assert limit < free.peak_bytes / 2 and tracer.peak_activation_bytes == limit
    assert "tanh at test_budget.py" in refusals[0] and "The least budget found so far is 512 bytes" in refusals[0]


def test_the_least_budget_of_a_chain_is_its_input_and_what_an_op_reads_and_gives(chain, same_bits):
    net = chain(12)
    _, gradients = net.run(mg.schedules.store_all())
    tracer, _, ours = chain_under(net, 3)
    same_bits(ours, gradients)
    assert tracer.peak_activations == 3
    with pytest.raises(mg.BudgetError, match="144 bytes") as refusal:
        chain_under(net, 2)
    assert refusal.value.least == 3 * ACTIVATION


@pytest.mark.parametrize("kind", ["op", "checkpoint"])
def test_what_runs_again_needs_what_it_reads_until_it_has_run(parameter, same_bits, kind):
    x = parameter(8)

    def forward():
        h = mg.exp(x)
        if kind == "op":
            value = mg.tanh(h + (x + 1.0))  # the sum reads h and another sum, which nobody keeps
        else:
            value = mg.checkpoint(lambda t: mg.sin(mg.cos(t + 1.0)), h)
        loss = (value * value).sum()
        rest = mg.exp(x)
        assert local.context.budget.evicted_ops.total() <= 1 and h.node.out is not None
        return loss + (h + rest).sum() * 0.0

    _, _, reference = under(PLENTY, forward, [x])
    _, budget, ours = under(3 * 64, forward, [x], evict=youngest_first)
    same_bits(ours, reference)
    with pytest.raises(mg.BudgetError, match="(add|cos) at .* needs to run again 192 bytes"):
        under(2 * 64, forward, [x], evict=youngest_first)


def test_a_replay_may_evict_what_the_vjps_before_it_have_read(parameter, same_bits):
    x = parameter(8)

    def forward():
        first = mg.exp(x)
        h = mg.checkpoint(lambda t: mg.exp(mg.exp(mg.exp(t))), x)
        return (h * first).sum()

    _, free, reference = under(PLENTY, forward, [x])
    _, budget, ours = under(free.peak_bytes - 64, forward, [x])
    same_bits(ours, reference)
    assert budget.evictions == 1


def test_an_error_says_the_layer_and_leaves_everything_as_it_was(parameter, same_bits):
    x = parameter(4)
    layers = mg.nn.Sequential(mg.nn.Tanh(), mg.nn.Sequential(mg.nn.Tanh()))
    reference = mg.grad(mg.tanh(mg.tanh(x)).sum(), [x])
    with mg.Tracer() as tracer, mg.memory_budget(3 * 32) as budget:
        before = mg.tanh(mg.tanh(x))
        big = mg.cat([before] * 3)
        with pytest.raises(mg.BudgetError, match=r"tanh at test_budget.py:\d+ in layer 0 needs 96"):
            with mg.memory_budget(64):
                layers(big)
        with pytest.raises(mg.BudgetError, match="mul at"), mg.memory_budget(64):
            big * big  # would retain `big`
        assert budget.held_bytes == tracer.live_activation_bytes == 2 * 32 and budget.evictions == 0
        assert before.node.out is not None and big.node.out is None
        same_bits(mg.grad(before.sum(), [x]), reference)
    assert mg.is_grad_enabled() and local.context.budget is None and local.context.tracer is None


def test_an_exception_in_the_block_or_in_a_hook_leaves_no_state(parameter, same_bits):
    x, before = parameter(8), set(eviction.entries)
    with pytest.raises(ZeroDivisionError), mg.memory_budget(4 * 64):
        tanhs(x).register_hook(lambda gradient: 1 / 0)
        loss = tanhs(x)
        loss.register_hook(lambda gradient: 1 / 0)
        loss.backward()
    del loss
    assert local.context.budget is None and local.context.tracer is None and x.grad is None
    assert eviction.entries.keys() <= before
    _, _, ours = under(4 * 64, lambda: tanhs(x), [x])
    same_bits(ours, mg.grad(tanhs(x), [x]))


def test_a_parameter_overwritten_before_a_value_came_back(parameter):
    w, b = parameter(8), parameter(8, seed=1)
    with mg.memory_budget(2 * 64, evict="lru"):
        loss = tanhs(mg.tanh(w + b), 3)  # no vjp reads b, but the addition does
        b.assign_(np.zeros(8))
        with pytest.raises(mg.OverwrittenError, match="add at test_budget.py"):
            loss.backward()
    assert w.grad is None


def test_what_another_backward_has_freed_cannot_come_back(parameter, same_bits):
    x = parameter(8)
    constant = mg.tensor(np.arange(8.0))
    with mg.memory_budget(3 * 64, evict="lru") as budget:
        root = mg.tanh(x) + constant
        value = mg.tanh(root)
        one, other = root.sum(), tanhs(value, 3)
        assert value.node.out is None
        one.backward()
        with pytest.raises(mg.GraphFreedError):
            mg.grad(other, [value])
    assert budget.held_bytes <= budget.limit


@pytest.mark.parametrize("bad", ["many", -1, None, 1.5, "5 parsecs"])
def test_a_budget_is_a_number_of_bytes(bad):
    with pytest.raises(mg.ArgumentError, match="number of bytes"):
        mg.memory_budget(bad)


def test_an_unknown_heuristic_is_an_error_that_lists_them():
    with pytest.raises(mg.ArgumentError, match="'dtr', 'local', 'lru', 'size', 'random'"):
        mg.memory_budget("1KB", evict="oldest")


# ---- Heuristics --------------------------------------------------------------------------------------


def test_a_function_of_a_storage_is_a_heuristic(parameter):
    x, seen = parameter(8), []

    def oldest_first(storage):
        seen.append((storage.nbytes, storage.cost, storage.staleness > 0, storage.neighbourhood))
        return storage.number

    with mg.memory_budget(3 * 64, evict=oldest_first) as budget:
        h = [x]
        for _ in range(6):
            h.append(mg.exp(h[-1]))
        assert [t.node.out is None for t in h[1:]] == [True, True, True, False, False, False]
    per_op = h[1].node.nbytes // 8 * 2 + 8 * 8  # each element read, written, and one exponential
    assert seen[0] == (64, per_op, True, 0)
    assert seen[-3:] == [(64, per_op, True, 2 * per_op), (64, per_op, True, 0), (64, per_op, True, 0)]
    assert "oldest_first" in repr(budget)


def test_the_neighbourhood_counts_what_is_on_the_way_and_not_what_nobody_reads(parameter):
    x = parameter(8)
    with mg.memory_budget(PLENTY) as budget:
        a = mg.exp(x)
        b = mg.exp((a + 1.0) + 2.0)
        dead = mg.exp(a * 2.0) * 0.5 + 1.0  # exp's value is read; what comes after it is not
    pool = budget._here.own
    storages = {storage.number: storage for storage in pool.storages.values()}
    add, exp = (eviction.entry_of(node).cost for node in (b.node.inputs[0], a.node))
    assert storages[a.node.number].neighbourhood == 0
    with eviction_of(pool, storages[b.node.number]):
        assert storages[a.node.number].neighbourhood == 2 * add + exp
    del dead


def test_a_view_costs_what_it_looks_at(parameter):
    x, w = parameter(4, 8), parameter(8, 3)
    with mg.memory_budget(PLENTY) as budget:
        flat = (x @ w).reshape(12)  # a view of the product, which nobody reads
        loss = (flat * flat).sum()
    (storage,) = budget._here.own.storages.values()
    assert storage.number == flat.node.number and storage.cost == 4 * 8 * 3
    assert storage.neighbourhood == 0  # the product is no neighbour, but itself
    del loss


class eviction_of:
    """Evict a storage as a budget does."""

    def __init__(self, pool, storage):
        from minigrad.budget.rematerialise import InForce

        self.force = InForce(pool)
        with self.force:
            pool.evict(storage)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def test_what_storages_remember_of_their_neighbourhood_is_what_is_there(monkeypatch, parameter):
    """Each time room is made, count again all that is remembered."""
    checked = []
    make_room = mg.memory_budget(0).__class__.__init__.__globals__["Pool"].make_room

    def checking(pool, nbytes):
        for storage in pool.storages.values():
            remembered = storage._neighbourhood
            storage.changed()
            if remembered is not None:
                assert storage.neighbourhood == remembered
                checked.append(remembered > 0)
        make_room(pool, nbytes)

    monkeypatch.setattr("minigrad.budget.memory_budget.Pool.make_room", checking)
    x, weights = parameter(8, 8), [parameter(8, 8, seed=i) for i in range(1, 7)]
    under(5000, lambda: u_net(x, weights), [x, *weights])
    for seed in range(30):
        try:
            run_program(seed, mg.checkpoint, "twice", 600, "dtr")
        except mg.BudgetError:
            pass
    assert sum(checked) > 50


# ---- Depth, nesting, threads -------------------------------------------------------------------------


@pytest.mark.parametrize("ops", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_very_many_ops_run_again_without_recursion(parameter, ops):
    x = parameter(1)
    with mg.memory_budget(3 * 8, evict="lru") as budget:
        h = x
        for _ in range(ops):
            h = h + 1.0  # keeps nothing
        h = mg.exp(h * 0.0)
        loss = tanhs(mg.sin(h), 3)
        assert budget.evictions == 1
        mg.grad(loss, [h])  # the gradient of sin reads h
        assert budget.figures().run_again["add"] == ops


def test_many_evicted_values_come_back_without_recursion(parameter, same_bits):
    x = parameter(1)
    reference = mg.grad(tanhs(x, 3000), [x])
    with mg.memory_budget(3000 * 8) as budget:
        with mg.memory_budget(3 * 8, evict="lru") as inner:
            loss = tanhs(x, 3000)
        assert inner.evictions == 2997
        same_bits(mg.grad(loss, [x]), reference)
    assert budget.rematerialised >= 2997 and inner.rematerialised == 0


def test_inside_another_budget_the_smaller_limit_holds_for_all(parameter):
    x = parameter(8)
    with mg.memory_budget(6 * 64) as outer:
        first = tanhs(x, 6)
        with mg.memory_budget(2 * 64, evict="lru") as inner:
            assert (outer.held_bytes, inner.evictions) == (2 * 64, 4)
            second = tanhs(x, 6)
            with mg.memory_budget(4 * 64) as innermost:
                third = tanhs(x, 3)
                assert innermost.peak_bytes == 2 * 64
        third.backward()
        assert inner.peak_bytes == 2 * 64 and inner.rematerialised == 0
        second.backward()
        first.backward()
    assert outer.peak_bytes == 6 * 64 and outer.evictions > inner.evictions
    with mg.memory_budget(2 * 64) as outer:
        kept = x * mg.tensor(np.ones(8))
        with pytest.raises(mg.BudgetError, match="what the tape holds"), mg.memory_budget(32):
            pass
        assert outer.held_bytes == 64
        mg.tanh(kept).sum().backward()


def test_one_budget_for_many_steps_and_within_itself(parameter):
    x, budget, before = parameter(8), mg.memory_budget(3 * 64), set(eviction.entries)
    for _ in range(3):
        with budget:
            with budget:
                loss = tanhs(x, 6)
            loss.backward()
        assert budget.held_bytes == 0
    assert budget.evictions % 3 == 0 and budget.peak_bytes == 3 * 64
    assert repr(budget).startswith("<memory budget of 192 B, dtr: at most 192 B held, ")
    del loss
    assert eviction.entries.keys() <= before


def test_each_thread_has_its_own(parameter, same_bits):
    x, budget, figures = parameter(8), mg.memory_budget(3 * 64), {}
    (reference,) = mg.grad(tanhs(x, 9), [x])
    here = threading.Barrier(2)

    def work(name, count):
        here.wait()
        with budget:
            (gradient,) = mg.grad(tanhs(x, count), [x])
        figures[name] = budget.evictions, budget.peak_bytes, gradient

    threads = [threading.Thread(target=work, args=arguments) for arguments in (("short", 3), ("long", 9))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert figures["short"][:2] == (0, 3 * 64) and figures["long"][0] >= 6 and figures["long"][1] == 3 * 64
    same_bits([figures["long"][2].numpy()], [reference.numpy()])
    assert budget.evictions == 0 and local.context.budget is None


def test_a_graph_of_one_thread_is_swept_in_another(parameter, same_bits):
    x = parameter(8)
    reference = mg.grad(tanhs(x), [x])
    with mg.memory_budget(3 * 64) as budget:
        loss = tanhs(x)
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    same_bits([x.grad.numpy()], reference)
    assert budget.rematerialised > 0 and budget.peak_bytes == 3 * 64


def test_a_pool_hears_all_that_a_tracer_hears(chain):
    """What the engine tells a tracer, and a budget's ledger counts alike, event by event."""
    net = chain(40)
    with mg.Tracer() as tracer, mg.memory_budget(13 * ACTIVATION) as budget:
        mg.checkpoint_sequential(net.layers[:20], 4, net.x).sum().backward()
        for step in mg.steps(mg.checkpoint_sequential(net.layers, 1, net.x).sum()):
            assert tracer.live_activation_bytes == budget.held_bytes, step
    assert tracer.peak_activation_bytes == budget.peak_bytes


def test_the_rows_of_a_budget_report_end_in_one_column(parameter):
    with mg.memory_budget(512) as budget:
        mg.exp(mg.tanh(parameter(8, 8))).sum().backward()
    rows = [row for row in budget.report().splitlines() if row.startswith(("op", "all", "exp", "tanh"))]
    assert len(rows) == 3 and len({len(row) for row in rows}) == 1, budget.report()


def test_a_budget_that_was_never_entered_has_no_peak():
    assert mg.memory_budget("1 KB").peak_bytes == 0


def test_what_only_a_discarded_output_is_made_from_comes_back_under_a_budget(parameter):
    """No vjp reads k, but y is restored from it."""
    x = parameter(8, 8)

    def loss(checkpoint):
        k = mg.tanh(x) + 1.0
        y = checkpoint(lambda t: t * 2.0, k)
        del k
        return (y * y).sum()

    with mg.memory_budget(10 * 512):
        loss(lambda fn, k: mg.checkpoint(fn, k, keep_output=False)).backward()
    ours, x.grad = x.grad.numpy(), None
    loss(lambda fn, k: fn(k)).backward()
    np.testing.assert_array_equal(ours, x.grad.numpy())


def test_a_smaller_budget_entered_inside_evicts_what_ran_last(parameter):
    x = parameter(8, 8)
    with mg.memory_budget(2 * 512):
        h = mg.tanh(x)
        with mg.memory_budget(511) as inner:
            assert inner.evictions == 1
    assert h.shape == (8, 8)


def test_a_storage_counts_a_value_once_however_often_it_is_read(parameter, monkeypatch):
    added, before = [], eviction.Storage.add
    monkeypatch.setattr(
        eviction.Storage, "add", lambda self, number, entry: added.append(number) or before(self, number, entry)
    )
    with mg.memory_budget(10 * 512):
        h = mg.tanh(parameter(8, 8))
        (h * h).sum()
        (h * h).sum()
    assert added and len(added) == len(set(added))


def test_a_heuristic_that_asks_for_no_neighbours_has_none_counted(parameter, monkeypatch):
    told = []
    monkeypatch.setattr(memory_budget, "tell_neighbours", lambda *given: told.append(given))
    with mg.memory_budget(2 * 512, evict="lru") as budget:
        h = parameter(8, 8)
        for _ in range(5):
            h = mg.tanh(h)
        h.sum().backward()
    assert budget.evictions and not told
