"""What lesson 02 says of three walks over one tape."""

import numpy as np
import pytest

import minigrad as mg

pytestmark = pytest.mark.lesson


def names(run, walk):
    return [run["name_of"][node] for node, _ in run[f"visits_of_{walk}"]]


def test_two_walks_are_right_and_depth_first_once_is_not(lesson):
    run = lesson("02")
    a, b = 2.0, 3.0  # loss = p q + q with p = a b and q = p + a
    p, q = a * b, a * b + a
    wrt_q = p + 1
    wrt_p = q + wrt_q
    expected = {"a": wrt_p * b + wrt_q, "b": wrt_p * a}
    for walk, right in (("every_way", True), ("depth_first", False), ("youngest_first", True)):
        gradients = run[f"gradients_of_{walk}"]
        found = {name: gradients[run[name].node] for name in "ab"}
        assert (found == expected) is right, walk
    assert run["leaf_gradients"] == expected


def test_every_way_visits_once_for_each_way_and_the_others_each_node_once(lesson):
    run = lesson("02")

    def ways(node):
        return 1 if node is run["loss"].node else sum(
            ways(reader) * reader.inputs.count(node) for reader in run["name_of"] if node in reader.inputs
        )  # fmt: skip

    every = names(run, "every_way")
    expected = {name: ways(node) for node, name in run["name_of"].items()}
    assert {name: every.count(name) for name in set(every)} == expected
    assert sorted(names(run, "depth_first")) == sorted(names(run, "youngest_first")) == sorted(run["name_of"].values())
    assert len(run.lines("every way: 15 visits")) == 1


def test_visits_double_with_each_diamond(lesson):
    run = lesson("02")
    assert run["counted"] == {n: 2 ** (n + 1) - 1 for n in (1, 2, 4, 8, 12)} and run["doubling"] is True
    assert run["years"] == pytest.approx(71.4, abs=0.1)


def test_youngest_first_is_the_walk_of_steps(lesson):
    run = lesson("02")
    assert names(run, "youngest_first") == ["loss", "r", "q", "p", "b", "a"]
    assert run["ours"] == run["theirs"] == [("loss", 1.0), ("r", 1.0), ("q", 7.0), ("p", 15.0)]


def test_on_a_random_program_the_lessons_walk_gives_minigrads_gradients(lesson):
    rng, leaves = np.random.default_rng(0), [mg.tensor(v, requires_grad=True) for v in np.linspace(0.5, 1.5, 3)]
    values = list(leaves)
    for _ in range(40):
        one, other = (values[i] for i in rng.integers(len(values), size=2))
        values.append(mg.tanh(one * other) if rng.random() < 0.5 else one * 0.5 + other)
    loss = values[-1] + values[-2] * values[-3]
    _, gradients = lesson("02")["youngest_first"](loss.node)
    loss.backward()
    for leaf in leaves:
        assert float(gradients.get(leaf.node, 0.0)) == pytest.approx(0.0 if leaf.grad is None else leaf.grad.item())


def test_recursion_fails_in_the_deep_and_the_heap_does_not(lesson):
    run = lesson("02")
    depth = run["DEPTH"]
    assert run["recursion_failed"] is True
    assert len(run["visits"]) == depth + 1 and run["steps_of_backward"] == depth
    assert run["x"].grad.item() == pytest.approx(1.0001**depth)


def test_the_picture_marks_the_two_nodes_that_hand_on_too_little(lesson):
    svg = lesson("02").files["02-walks.svg"].read_text("utf-8")
    assert svg.count('id="incomplete"') == 2
    assert "hands on 8," in svg and "should be 15" in svg
