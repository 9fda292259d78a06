"""Pictures of the tape. They are read back through DOT text, and through what `dot` itself says of it."""

import gc
import html
import importlib.util
import os
import re
import subprocess
import sys
import weakref
import xml.dom.minidom

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn
from minigrad.view import dot
from minigrad.view.layers import repeats_at
from minigrad.view.looks import LOOKS
from minigrad.view.palette import CROSSING

HELD, BOUNDARY, INPUT, PARAMETER, DROPPED = (
    LOOKS[state][0]["fillcolor"] for state in ("activation", "boundary", "input", "parameter", "dropped")
)


def has_dot():
    try:
        dot.find_dot()
    except mg.MinigradError:
        return False
    return True


needs_dot = pytest.mark.skipif(
    not has_dot(), reason="there is no dot here: neither Graphviz nor graphviz-pure"
)


class Read:
    """DOT text taken apart: nodes (key -> attributes), edges, and which nodes stand in which cluster."""

    def __init__(self, graph):
        self.source = graph.source
        self.nodes, self.edges, self.clusters, self.inside = {}, [], [], {}
        open_blocks = []
        for line in self.source.splitlines():
            line = line.strip()
            if line.endswith("{"):
                open_blocks.append(line.removesuffix("{").split()[-1] if line != "{" else "")
                if open_blocks[-1].startswith("cluster"):
                    self.clusters.append(open_blocks[-1])
            elif line == "}":
                open_blocks.pop()
            elif match := re.match(r"(\S+) -> (\S+)(?: \[(.*)\])?$", line):
                attributes = parse(match[3] or "")
                if attributes.get("style") != "invis":
                    self.edges.append((match[1], match[2], attributes))
            elif match := re.match(r"(\S+) \[(.*)\]$", line):
                if match[1] not in ("node", "edge", "graph") and not match[1].startswith("note_"):
                    self.nodes[match[1]] = parse(match[2])
                    self.inside[match[1]] = [block for block in open_blocks if block.startswith("cluster")]
        assert open_blocks == []

    def words(self, key):
        """What a reader sees in a box."""
        return plain(self.nodes[key]["label"])

    def find(self, words):
        """The one node in which `words` begin a word."""
        (key,) = [key for key in self.nodes if re.search(r"(?<!\w)" + re.escape(words), self.words(key))]
        return key

    def reads(self, key):
        return [tail for tail, head, _ in self.edges if head == key]


def parse(text):
    """The attributes of one DOT line."""
    found = re.findall(r'(\w+)=(<<?(?:(?!> \w+=|>$).)*>|"(?:[^"\\]|\\.)*"|[^\s"<]+)', text)
    return {key: value.strip('"') for key, value in found}


def plain(label):
    return html.unescape(re.sub("<[^>]*>", " ", label.replace("<br/>", "\n"))).strip()


def leaf(*shape, name=None):
    return mg.tensor(np.ones(shape, np.float32), requires_grad=True, name=name)


# ---- One box a value ---------------------------------------------------------------------------------


def test_each_node_is_a_box_and_each_use_an_edge():
    x, w = mg.tensor([[1.0, 2.0]], name="x"), leaf(2, 2, name="w")
    h = x @ w
    y = mg.tanh(h)
    loss = (y * y).sum()
    graph = Read(mg.draw(loss))
    keys = {t: f"n{t.node.number}" for t in (x, w, h, y, loss)}
    mul = f"n{loss.node.inputs[0].number}"
    assert set(graph.nodes) == {*keys.values(), mul}
    assert sorted(edge[:2] for edge in graph.edges) == sorted(
        [
            (keys[x], keys[h]),
            (keys[w], keys[h]),
            (keys[h], keys[y]),
            (keys[y], mul),
            (keys[y], mul),
            (mul, keys[loss]),
        ]
    )
    assert "matmul" in graph.words(keys[h]) and "[1, 2] · 8 B" in graph.words(keys[h])
    assert re.search(r"test_draw.py:\d+ .* float32\[1, 2\]", graph.nodes[keys[h]]["tooltip"])
    assert graph.words(keys[w]).startswith("w") and graph.words(keys[x]).startswith("x")


def test_shared_values_stand_once():
    a = leaf(1, name="a")
    b = a + a
    c = b * b
    graph = Read(mg.draw(c))
    assert len(graph.nodes) == 3
    assert [edge[:2] for edge in graph.edges].count((f"n{a.node.number}", f"n{b.node.number}")) == 2


def test_a_constant_that_one_reader_keeps_and_another_does_not_stands_once():
    x, w = mg.tensor([1.0, 2.0], name="x"), leaf(2)
    graph = Read(mg.draw(x * w + (x + w)))
    assert [graph.words(key).split()[0] for key in graph.nodes].count("x") == 1


def test_filled_is_what_the_tape_holds_and_hollow_what_it_does_not():
    x, w = mg.tensor([[1.0, 2.0]]), leaf(2, 2)
    loss = mg.tanh(x @ w).sum()
    graph = Read(mg.draw(loss))
    fills = {
        graph.words(key).split("(")[0].split()[0]: node["fillcolor"] for key, node in graph.nodes.items()
    }
    assert fills == {
        "matmul": DROPPED, "tanh": HELD, "sum": DROPPED, "input": INPUT, "parameter": PARAMETER
    }  # fmt: skip
    loss.backward()
    graph = Read(mg.draw(loss))
    assert graph.nodes[graph.find("tanh")]["fillcolor"] == DROPPED


def test_plain_numbers_and_settings_stand_in_the_label():
    x = leaf(2, 3)
    graph = Read(mg.draw((x * 2.5 - 1).sum(axis=0)))
    assert len(graph.nodes) == 4
    assert "mul(·, 2.5)" in graph.words(graph.find("mul")).replace(" (", "(")
    assert "axis=0" in graph.words(graph.find("sum")) and "keepdims" not in graph.source


def test_a_dtype_is_written_where_it_is_not_that_of_most():
    x = leaf(2, 3)
    graph = Read(mg.draw((x * x).astype(np.float64)))
    assert "float64[2, 3] · 48 B" in graph.words(graph.find("astype"))
    assert "\n [2, 3] · 24 B" in graph.words(graph.find("mul"))


def test_settings_are_short_and_an_index_is_written_as_one():
    x = leaf(9, 8, 7)
    graph = Read(mg.draw(mg.softmax(x[:, 2:4, None, ..., -1] * (1 / 3), axis=-1)))
    assert "".join(graph.words(graph.find("getitem")).split()).startswith("getitem[:,2:4,None,…,-1]")
    assert "0.3333)" in graph.words(graph.find("mul"))
    long = Read(mg.draw(x[list(range(9)), list(range(8)) + [0], [0, 1, 2, 3, 4, 5, 6, 0, 0]]))
    assert max(map(len, long.words(long.find("getitem")).split("\n"))) < 50


def test_a_leaf_and_several_roots_and_nodes_can_be_drawn():
    x = leaf(2, name="x")
    assert len(Read(mg.draw(x)).nodes) == 1
    assert len(Read(mg.draw(mg.tensor([1.0]))).nodes) == 1
    y, z = mg.tanh(x), mg.sin(x)
    assert len(Read(mg.draw([y, z, y])).nodes) == 3
    assert mg.draw(y.node).source == mg.draw(y).source


def test_dashed_edges_carry_no_gradient():
    x, w = mg.tensor([1.0]), leaf(1)
    graph = Read(mg.draw(x * w))
    styles = {graph.words(tail).split()[0]: edge.get("style") for tail, _, edge in graph.edges}
    assert styles == {"input": "dashed", "parameter": None}


def test_drawing_twice_gives_the_same_text():
    loss = mg.checkpoint(lambda t: mg.tanh(t * 2) * t, leaf(3)).sum()
    assert mg.draw(loss).source == mg.draw(loss).source


# ---- Checkpoints -------------------------------------------------------------------------------------


def test_a_checkpoint_is_a_frame_around_its_body():
    x, w = mg.tensor([[1.0, 2.0]], name="x"), leaf(2, 2, name="w")
    y = mg.checkpoint(lambda t: mg.tanh(mg.sin(t @ w)), x, name="block")
    loss = (y * w).sum()
    graph = Read(mg.draw(loss))
    inside = {graph.words(key).split()[0] for key, clusters in graph.inside.items() if clusters}
    assert graph.clusters == ["cluster_0"] and inside == {"matmul", "sin", "tanh"}
    assert "checkpoint block" in graph.source
    crossing = {
        (graph.words(a).split()[0], graph.words(b).split()[0])
        for a, b, e in graph.edges
        if e.get("color") == CROSSING
    }
    assert crossing == {("x", "matmul"), ("w", "matmul")}
    bold = {graph.words(a).split()[0] for a, _, e in graph.edges if e.get("penwidth") == "2"}
    assert bold == {"x"}  # a parameter is there anyway, and its line is thin
    output = f"n{y.node.number}"
    assert graph.words(output).startswith("tanh") and graph.nodes[output]["fillcolor"] == BOUNDARY
    assert graph.nodes[graph.find("sin")]["fillcolor"] == DROPPED
    assert graph.reads(graph.find("mul ")) == [output, graph.find("w ")]


def test_the_note_says_what_a_checkpoint_keeps_and_what_its_replay_brings_back():
    x, w = mg.tensor(np.ones((4, 8), np.float32)), leaf(8, 8)
    loss = mg.checkpoint(lambda t: mg.tanh(mg.tanh(t @ w) @ w) @ w, x).sum()
    (note,) = re.findall(r"note_0 \[label=<(.*?)> fontsize", mg.draw(loss).source)
    assert "keeps 128 B" in plain(note) and "replay brings back 256 B" in plain(note)
    y = mg.checkpoint(lambda t: mg.tanh(mg.tanh(t @ w)), x)
    (note,) = re.findall(r"note_0 \[label=<(.*?)> fontsize", mg.draw(y * y).source)
    assert "replay brings back 128 B" in plain(note)  # its output is held, and so is not computed again


def test_checkpoints_in_checkpoints_and_several_outputs():
    w = leaf(3)

    def inner(t):
        return mg.tanh(t * w), mg.sin(t)

    def outer(t):
        a, b = mg.checkpoint(inner, mg.exp(t))
        return a + b, a

    o, a = mg.checkpoint(outer, w)
    graph = Read(mg.draw((o * a).sum()))
    assert graph.clusters == ["cluster_0", "cluster_1"]
    assert graph.inside[graph.find("exp")] == graph.inside[graph.find("add")] == ["cluster_0"]
    assert graph.inside[graph.find("tanh")] == graph.inside[graph.find("sin")] == ["cluster_0", "cluster_1"]
    assert graph.find("tanh") == f"n{a.node.number}" and graph.nodes[graph.find("tanh")]["fillcolor"] == BOUNDARY
    assert sorted(graph.reads(f"n{o.node.number}")) == sorted([graph.find("tanh"), graph.find("sin")])


def test_a_picture_while_backward_runs():
    w = leaf(3)
    loss = mg.checkpoint(lambda t: mg.tanh(mg.sin(t)) * t, w).sum()
    texts = [Read(mg.draw(loss)).source for step in mg.steps(loss)]
    assert "cluster_0" in texts[0] and "cluster_0" not in texts[-1] and "checkpoint" in texts[-1]


def test_drawing_replays_nothing_and_keeps_nothing_alive():
    x = leaf(3)
    with mg.Tracer() as tracer:
        loss = mg.checkpoint(lambda t: mg.tanh(mg.sin(t)) * t, x).sum()
        before = tracer.step, tracer.live_buffers, tracer.live_activations
        graphs = [mg.draw(loss), mg.draw(loss, level="layer")]
        assert (tracer.step, tracer.live_buffers, tracer.live_activations) == before
    gone = weakref.ref(loss.node)
    del loss
    assert not gc.isenabled() and gone() is None and graphs


# ---- Large graphs ------------------------------------------------------------------------------------


def deep(n):
    y = x = leaf(1, name="start")
    for _ in range(n):
        y = mg.sin(y)
    return x, y


def test_what_is_left_out_is_counted_and_the_ends_are_kept():
    x, y = deep(3000)
    graph = Read(mg.draw(y, max_nodes=100))
    assert len(graph.nodes) == 101
    assert "2,901 more" in graph.words("rest")
    assert {f"n{x.node.number}", f"n{y.node.number}"} <= set(graph.nodes)
    assert (f"n{x.node.number}", "rest") in [edge[:2] for edge in graph.edges]
    assert len(Read(mg.draw(y, max_nodes=1)).nodes) == 2


def test_no_limit_means_no_rest():
    _, y = deep(5000)
    graph = Read(mg.draw(y, max_nodes=None))
    assert len(graph.nodes) == 5001 and len(graph.edges) == 5000 and "rest" not in graph.nodes


def test_the_nearest_nodes_are_kept():
    w = [leaf(1, name=f"w{i}") for i in range(50)]
    y = w[0]
    for p in w[1:]:
        y = y * p
    graph = Read(mg.draw(y, max_nodes=12))
    shown = {graph.words(key).split()[0] for key in graph.nodes}
    assert {"w49", "w48", "w47", "w0"} <= shown and "w25" not in shown


# ---- Layers ------------------------------------------------------------------------------------------


class Layer:
    def __init__(self, weight):
        self.weight = weight

    def __call__(self, h):
        return mg.tanh(h @ self.weight)


def chain(length, schedule):
    x = mg.tensor(np.ones((3, 4), np.float32), name="x")
    layers = [Layer(leaf(4, 4)) for _ in range(length)]
    return mg.checkpoint_sequential(layers, schedule, x).sum()


def numbered(graph, number):
    """The box of a layer that has no other name than its number."""
    (key,) = [key for key in graph.nodes if graph.words(key).split()[0] == str(number)]
    return key


def test_a_chain_of_layers_stands_in_rows_with_a_checkpoint_in_each():
    graph = Read(mg.draw(chain(100, mg.schedules.every(10)), level="layer"))
    assert len(graph.nodes) == 102 and len(graph.clusters) == 9
    assert graph.source.count("rank=same") == 11  # x, nine checkpoints, the taped rest with the sum
    for number in range(100):
        key = numbered(graph, number)
        assert graph.inside[key] == ([f"cluster_{number // 10}"] if number < 90 else [])
        state = HELD if number >= 90 else BOUNDARY if number % 10 == 9 else DROPPED
        assert graph.nodes[key]["fillcolor"] == state
        if number:
            assert graph.reads(key) == [numbered(graph, number - 1)]
    assert graph.reads(numbered(graph, 0)) == [graph.find("x ")]
    assert "a layer is matmul, tanh and gives [3, 4]" in plain(graph.source)


def test_repeats_are_folded_when_there_are_too_many():
    graph = Read(mg.draw(chain(1000, mg.schedules.every(100)), level="layer"))
    assert graph.clusters == ["cluster_0"] and "checkpoint × 9" in graph.source and "rest" not in graph.nodes
    first, last = graph.find("layers 0–98, 100–198 … 800–898 "), graph.find("layers 99, 199 … 899 ")
    assert "(matmul, tanh) × 99" in graph.words(first) and "× " not in graph.words(last)
    assert graph.inside[first] == graph.inside[last] == ["cluster_0"]
    assert graph.nodes[first]["fillcolor"] == DROPPED and graph.nodes[last]["fillcolor"] == BOUNDARY
    assert graph.reads(last) == [first] and graph.reads(first) == [graph.find("x ")]
    assert graph.reads(graph.find("layers 900–999 ")) == [last]
    unfolded = Read(mg.draw(chain(30, mg.schedules.store_all()), level="layer", folded=True))
    assert len(unfolded.nodes) == 3
    cut = Read(mg.draw(chain(1000, mg.schedules.every(100)), level="layer", folded=False, max_nodes=20))
    assert len(cut.nodes) == 21 and "982 more layers" in cut.words("rest")


def test_folding_finds_patterns_of_several_layers():
    def structure(text):
        return [(letter, None, ()) for letter in text]

    assert repeats_at(structure("abcabcabc"), 0) == (3, 3)
    assert repeats_at(structure("aaaa"), 0) == (1, 4)
    assert repeats_at(structure("abc"), 0) == (1, 1)
    assert repeats_at(structure("xabab"), 1) == (2, 2)
    assert repeats_at([*structure("a"), None, *structure("a")], 0) == (1, 1)


class Block(nn.Module):
    def __init__(self):
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        return x + self.down(mg.tanh(self.up(x)))


def test_modules_are_layers_and_depth_puts_them_together():
    model = nn.Module()
    model.blocks = nn.Sequential(*[Block() for _ in range(3)])
    model.forward = lambda x: model.blocks(x)
    loss = model(mg.ones(2, 4)).sum()
    graph = Read(mg.draw(loss, level="layer", folded=False))
    names = sorted((graph.inside[key], graph.words(key).split()[0]) for key in graph.nodes)
    parts = [([f"cluster_m{i}"], name) for i in range(3) for name in ("add", "down", "tanh", "up")]
    assert names == [([], "input"), ([], "sum"), *parts]
    assert sorted(re.findall(r"<b>(blocks\.\d)</b>", graph.source)) == ["blocks.0", "blocks.1", "blocks.2"]
    together = Read(mg.draw(loss, level="layer", depth=2, folded=False))
    names = [together.words(key).split()[0] for key in together.nodes]
    assert names == ["input", "blocks.0", "blocks.1", "blocks.2", "sum"]
    assert "linear × 2, tanh, add" in together.words(together.find("blocks.1"))
    together = Read(mg.draw(loss, level="layer", depth=2, folded=True))
    assert "(linear × 2, tanh, add) × 2" in together.words(together.find("blocks.0–1"))  # the last one's add is dropped


# ---- Names and the legend ----------------------------------------------------------------------------

NAMES = [
    'enc:0/W<1> "q"\n{x}',
    "a\\N\\b\\",
    "<b>&amp;</b>",
    "naïve–π→日本",
    "\ud800",
    "|{port}|",
    "n1 -> n2",
    "",
]


@needs_dot
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_any_name_is_shown_as_it_is(tmp_path, name):
    w = leaf(1, name=name)
    y = mg.checkpoint(lambda t: mg.sin(mg.exp(t)), w, name=name) * 2
    y.node.name = name
    path = mg.render(y.sum(), tmp_path / "g.svg")
    svg = path.read_text("utf-8")
    words = [node.firstChild.data for node in xml.dom.minidom.parseString(svg).getElementsByTagName("text")]
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in name) or "parameter"
    assert any(shown in word for word in words), words


def test_the_legend_explains_what_is_there_and_nothing_else():
    x, w = mg.tensor([1.0]), leaf(1)

    def legend(tensor, **how):
        return plain(re.search(r"\tlabel=(<<table.*>>)", mg.draw(tensor, **how).source)[1])

    small = legend(w * w)
    assert "parameter" in small and "is read by" in small
    for word in ("checkpoint:", "dashed", "dotted", "input", "bold"):
        assert word not in small, small
    y = mg.checkpoint(lambda t: mg.sin(mg.exp(t * w)), x)
    for word in ("checkpoint:", "dashed:", "bold:", "kept for a checkpoint", "dropped:", "parameter:"):
        assert word in legend(y * y), word
    assert "dotted:" in legend(y, max_nodes=2) and "parameters are not drawn" in legend(y, level="layer")
    for word in ("its turn comes", "gradient that comes", "highlighted"):
        assert (word in legend(y, order=True, gradients=True, highlight=w)) and word not in small, word


# ---- Files -------------------------------------------------------------------------------------------


@needs_dot
def test_render_writes_what_the_suffix_says(tmp_path):
    y = mg.tanh(leaf(2, name="w"))
    for suffix, start in (
        (".svg", b"<?xml"),
        (".png", b"\x89PNG"),
        (".jpg", b"\xff\xd8"),
        (".PNG", b"\x89PNG"),
    ):
        path = mg.render(y, str(tmp_path / f"g{suffix}"))
        assert path.read_bytes().startswith(start)
    assert mg.render(mg.draw(y), tmp_path / "h.svg").exists()


def test_dot_text_needs_no_dot(tmp_path, monkeypatch):
    monkeypatch.setattr(dot, "find_dot", lambda: pytest.fail("looked for dot"))
    y = mg.tanh(leaf(2, name="π"))
    for suffix in (".dot", ".gv"):
        assert mg.render(y, tmp_path / f"g{suffix}").read_text("utf-8") == mg.draw(y).source


def test_without_dot_one_error_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(dot.shutil, "which", lambda name: None)
    monkeypatch.setattr(dot, "embedded_dot", lambda: None)
    with pytest.raises(mg.MinigradError, match=r"minigrad\[pictures\].*draw\(tensor\)\.source"):
        mg.render(leaf(1), tmp_path / "g.svg")
    assert not (tmp_path / "g.svg").exists()


def test_the_systems_dot_comes_first(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\ncat > /dev/null\necho pdf $1 $2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert mg.render(leaf(1), tmp_path / "g.pdf").read_text() == "pdf -Kdot -Tpdf\n"
    program.write_text("#!/bin/sh\ncat > /dev/null\necho broken >&2\nexit 3\n")
    with pytest.raises(mg.MinigradError, match="broken"):
        mg.render(leaf(1), tmp_path / "h.pdf")
    assert not (tmp_path / "h.pdf").exists()


@needs_dot
def test_the_embedded_dot_is_found_without_a_path_to_it(tmp_path, monkeypatch):
    if dot.embedded_dot() is None:
        pytest.skip("graphviz-pure is not installed")
    monkeypatch.setenv("PATH", "")
    assert mg.render(leaf(1), tmp_path / "g.svg").exists()
    with pytest.raises(mg.MinigradError, match="no pdf"):
        mg.render(leaf(1), tmp_path / "g.pdf")


@pytest.mark.parametrize(
    "call",
    [
        lambda: mg.draw(leaf(1), level="wide"),
        lambda: mg.draw(leaf(1), max_nodes=0),
        lambda: mg.draw(leaf(1), max_nodes=2.5),
        lambda: mg.draw(leaf(1), level="layer", depth=0),
        lambda: mg.draw(3),
        lambda: mg.draw([]),
        lambda: mg.render(leaf(1), "picture"),
    ],
)
def test_wrong_arguments(call):
    with pytest.raises(mg.ArgumentError):
        call()


def test_importing_minigrad_imports_no_picture_code():
    program = (
        "import sys, minigrad; print([m for m in sys.modules if 'graphviz' in m or 'minigrad.view' in m])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert importlib.util.find_spec("minigrad.view") is not None


@needs_dot
def test_dot_takes_a_large_picture(tmp_path):
    loss = chain(100, mg.schedules.every(10))
    mg.render(loss, tmp_path / "layers.svg", level="layer")
    mg.render(loss, tmp_path / "ops.svg", max_nodes=None)
