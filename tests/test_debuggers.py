"""Plain debuggers on minigrad: what one sees when one stops in it. The guide's sessions are typed again, for real."""

import ast
import json
import os
import re
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import minigrad as mg
from minigrad.engine.place import ENGINE_FILES
from minigrad.engine.walk import Sweep

GUIDE = Path(__file__).resolve().parent.parent / "lessons" / "debugging.md"
ENVIRONMENT = {
    **os.environ, "PYTHONPATH": str(GUIDE.parent.parent), "PYTHONIOENCODING": "utf-8",
    "TERM": "dumb", "NO_COLOR": "1", "PYTHON_COLORS": "0",
}  # fmt: skip
PROMPT = r"\((Pdb|step)\) "


# ---- The guide ---------------------------------------------------------------------------------------


def blocks(kind):
    """The fenced blocks of one kind in the guide."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def programs():
    """name -> text of the programs in the guide."""
    return {re.match(r"# (\S+)\n", text)[1]: text for text in blocks("python")}


def parts(session):
    """(what is typed, what is expected then): the first is the command that starts it."""
    first, *rest = re.split(rf"^{PROMPT}", session, flags=re.MULTILINE)
    typed = [first.removeprefix("$ "), *rest[1::2]]
    return [tuple(text.partition("\n")[::2]) for text in typed]


def pattern(expected):
    """What is expected as a regular expression: "..." is anything, and node numbers may all be others."""
    text = re.escape(expected.rstrip()).replace(r"\.\.\.", ".*?")
    return re.compile(re.sub(r"\\#\d+", r"\\#\\d+", text), re.DOTALL)


def shown(raw, typed):
    """A terminal's output without the echo of what was typed, and without escape sequences and trailing blanks."""
    text = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", raw).replace("\r", "")
    text = text.removeprefix(typed).lstrip("\n") if typed else text
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip()


def replay(session, folder):
    """Type a session into a real terminal; assert that what comes back is what the guide says."""
    pexpect = pytest.importorskip("pexpect", reason="needs pexpect, which the dev extra installs")
    (command, expected), *rest = parts(session)
    arguments = command.split()[1:]
    terminal = pexpect.spawn(
        sys.executable, arguments, cwd=str(folder), env=ENVIRONMENT, encoding="utf-8", dimensions=(50, 1000), timeout=60
    )  # wide, as the terminal would break long lines
    typed = ""
    try:
        for next_typed, next_expected in [*rest, (None, None)]:
            at_prompt = terminal.expect([PROMPT, pexpect.EOF]) == 0
            output = shown(terminal.before, typed)
            wanted = "\n".join(line.rstrip() for line in expected.splitlines())
            assert pattern(wanted).fullmatch(output), f"after {typed or command!r} came\n{output}\nand not\n{wanted}"
            if next_typed is None:
                assert not at_prompt, f"after {typed!r} there is still a prompt"
                return
            assert at_prompt, f"it ended before {next_typed!r} could be typed"
            terminal.sendline(next_typed)
            typed, expected = next_typed, next_expected
    finally:
        terminal.close(force=True)


@pytest.mark.lesson
@pytest.mark.parametrize("session", blocks("console"), ids=[parts(text)[0][0] for text in blocks("console")])
def test_every_session_of_the_guide_is_what_a_terminal_shows(session, tmp_path):
    for name, text in programs().items():
        (tmp_path / name).write_text(text, "utf-8")
    replay(session, tmp_path)


def test_a_session_that_has_rotted_is_noticed(tmp_path):
    (tmp_path / "square.py").write_text(programs()["square.py"], "utf-8")
    good = blocks("console")[0]
    for rotted in (good.replace("g = array", "h = array"), good.replace("(Pdb) continue\n", ""), good + "more\n"):
        with pytest.raises(AssertionError):
            replay(rotted, tmp_path)


def test_the_guide_speaks_of_what_there_is():
    text = GUIDE.read_text("utf-8")
    (launch,) = map(json.loads, blocks("json"))
    assert launch["configurations"][0]["justMyCode"] is False
    assert "node" in Sweep.step.__code__.co_varnames and "source" in Sweep.step.__code__.co_varnames
    assert all(re.search(rf"^\$ python .*\b{name}$", text, re.MULTILINE) for name in programs())


# ---- Frames ------------------------------------------------------------------------------------------


def frames_between(function):
    """Call `function` with a probe; returns the names of the engine's frames between its caller and the probe."""
    found = []

    def probe():
        frame, names = sys._getframe(2), []  # of who called the one that calls the probe
        while frame.f_code.co_filename in ENGINE_FILES:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        found.append(names)

    function(probe)
    assert len(found) == 1
    return found[0]


def probed(t, probe):
    """An op whose vjp calls the probe."""

    @mg.op
    def same(x):
        return x * 1.0

    @same.vjp("x")
    def same_wrt_x(g):
        probe()
        return g

    return same(t)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_four_frames_of_the_engine_lie_between_a_program_and_its_vjp(checkpoint, parameter):
    def program(probe):
        x = parameter(3)
        y = mg.checkpoint(probed, x, probe) if checkpoint else probed(x, probe)
        (y * y).sum().backward()

    names = frames_between(program)
    assert names == ["__call__", "step", "walk", "backward"]


def test_four_frames_of_the_engine_lie_between_a_program_and_its_hook(parameter):
    def program(probe):
        def hook(gradient):
            probe()

        h = parameter(3) * 2.0
        h.register_hook(hook)
        (h * h).sum().backward()

    assert frames_between(program) == ["call_hooks", "step", "walk", "backward"]


def test_four_frames_of_the_engine_lie_between_a_loop_over_steps_and_a_vjp(parameter):
    def program(probe):
        for _ in mg.steps(probed(parameter(3), probe).sum()):
            pass

    assert frames_between(program) == ["__call__", "step", "walk", "named_steps"]


def test_no_frame_of_the_engine_can_be_a_lambda():
    files = ("tensor", "op", "sweep", "walk", "gradients", "replay", "checkpoint", "ops/*")
    for file in (path for name in files for path in Path(mg.__file__).parent.glob(f"{name}.py")):
        found = [node.lineno for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Lambda)]
        assert found == [], file


# ---- detect_anomaly ----------------------------------------------------------------------------------


def anomaly(program):
    """The error that `program` ends in under detect_anomaly."""
    with np.errstate(all="ignore"), mg.detect_anomaly(), pytest.raises(mg.MinigradError) as told:
        program()
    return str(told.value)


def test_the_first_nan_is_named_with_its_place_and_what_was_there():
    x = mg.tensor([[4.0, 0.0, 1.0], [0.0, 1.0, 2.0]], requires_grad=True)
    text = anomaly(lambda: (mg.sqrt(x) * 0.0).sum().backward())
    assert re.match(r"sqrt_wrt_x, the gradient of sqrt at test_debuggers.py:\d+, gave nan at \[0, 1\] of its", text)
    assert "float32[2, 3], the first of 2. It read out = 0.0 there." in text
    assert "The gradient that arrived, float32[2, 3], was finite, 0.0 there." in text


def test_a_gradient_that_arrives_bad_is_said_to():
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    bad = [1.0, np.inf, np.nan]
    text = anomaly(lambda: mg.tanh(x).backward(np.array(bad)))
    assert "tanh_wrt_x" in text and "gave nan at [2]" in text and "had a nan already at [2], the first of 1" in text
    text = anomaly(lambda: (x.sum() * mg.tensor([1.0, 0.0])).backward(np.array([0.0, np.inf])))
    assert "mul_wrt_a" in text and "was inf at [1], the first of 1 that are not finite" in text


def test_shapes_that_differ_are_not_compared_by_place():
    x = mg.tensor(np.ones((2, 3)), requires_grad=True)
    text = anomaly(lambda: (x @ mg.tensor(np.full((3, 4), np.nan))).backward(np.ones((2, 4))))
    assert "gave nan at [0, 0] of its float64[2, 3], the first of 6. The gradient that arrived, float64[2, 4]" in text
    assert text.count(" there.") == 0


def test_a_nan_of_a_scalar_and_of_recorded_gradients_is_named_too():
    x = mg.tensor(0.0, requires_grad=True)
    assert "gave nan at [] of its float32[]" in anomaly(lambda: (mg.sqrt(x) * 0.0).backward())
    assert "gave nan at [] of its float32[]" in anomaly(lambda: (mg.sqrt(x) * 0.0).backward(create_graph=True))


def test_both_lines_of_a_nan_in_a_replay_are_named():
    x = mg.tensor([0.0], requires_grad=True)

    def region(t):
        return mg.sqrt(t) * 0.0

    line = region.__code__.co_firstlineno + 1
    text = anomaly(lambda: mg.checkpoint(region, x).sum().backward())
    assert f"sqrt at test_debuggers.py:{line}, inside the checkpoint at test_debuggers.py:{line + 3}, gave" in text


class Witness:
    """Lives as long as the frame whose variable it is."""


@pytest.mark.parametrize("checkpoint", [False, True])
def test_an_anomaly_leaks_no_frame_and_no_array(checkpoint):
    gone = []

    @mg.op
    def shaky(x):
        return x * 1.0

    @shaky.vjp("x")
    def shaky_wrt_x(g, out):
        witness, bad = Witness(), np.full(3, np.nan)
        gone.extend(map(weakref.ref, (witness, bad, out)))
        return bad

    def program():
        witness = Witness()
        gone.append(weakref.ref(witness))
        x = mg.tensor(np.ones(3), requires_grad=True)
        h = mg.tanh(x)
        y = (mg.checkpoint(shaky, h) if checkpoint else shaky(h)) * 2.0
        gone.extend(map(weakref.ref, (x.data, h.data, h.node, y.node)))
        y.sum().backward()

    try:
        with mg.detect_anomaly():
            program()
    except mg.MinigradError as error:
        assert "shaky_wrt_x" in str(error) and len(gone) == 8
    assert [reference() for reference in gone] == [None] * 8


def test_an_error_in_a_vjp_leaks_no_frame_either():
    gone = []

    @mg.op
    def broken(x):
        return x * 1.0

    @broken.vjp("x")
    def broken_wrt_x(g):
        witness = Witness()
        gone.append(weakref.ref(witness))
        raise KeyError("no such thing")

    try:
        broken(mg.tensor(np.ones(3), requires_grad=True)).sum().backward()
    except mg.MinigradError as error:
        assert "KeyError" in str(error)
    assert [reference() for reference in gone] == [None]


# ---- Representations ---------------------------------------------------------------------------------


def test_reprs_of_large_tensors_teach():
    x = mg.tensor(np.ones((64, 64), np.float32), requires_grad=True, name="x")
    h = mg.checkpoint_sequential([mg.tanh, mg.tanh], mg.schedules.store_all(), x)
    number = h.node.number
    assert repr(h) == f"Tensor(shape=(64, 64), float32, tanh #{number} in 1, live)"
    assert re.fullmatch(rf"<tanh #{number} \(64, 64\) float32 in 1 at test_debuggers.py:\d+, live>", repr(h.node))
    (first, *_) = mg.steps(h.sum())
    assert repr(first) == f"Step(op, {first.node!r}, freed 0 B)" and repr(h).endswith("dropped)")


def test_a_python_without_a_terminal_shows_the_same_frames(tmp_path):
    """pdb from a pipe, for whoever has no pexpect."""
    (tmp_path / "square.py").write_text(programs()["square.py"], "utf-8")
    done = subprocess.run(
        [sys.executable, "square.py"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        input="where\ncontinue\n",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    frames = re.findall(r"^(?:\(Pdb\) )?[ >] .*?(\w+)\.py\(\d+\)", done.stdout, re.MULTILINE)
    assert frames[1:] == ["square", "sweep", "walk", "walk", "op", "square"]
