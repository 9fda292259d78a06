"""The terminal stepper: `mg.debug(loss)` goes backward as far as you say, and shows what there is to see.

Backward is a generator of steps (sweep.py), and this is a program that takes them one at a time. `Stepper.walk` is
again a generator of the same steps. It goes on until the goal that the last command has set (goals.py) is reached;
then it asks for commands, at a prompt made with the standard library's `cmd`. So a stepper can stand wherever a walk
does: in `debug`, in a script's own `loss.backward()` (step.py), in a loop over `mg.steps(loss)`.

What a stop shows is in journey.py, how it is put in words in glance.py, and how `peak` knows in rehearsal.py.
"""

import cmd
import difflib
import sys
from collections import deque

from ..engine.sweep import start
from ..errors import MinigradError
from ..table import describe, held_text, shape_text, table
from .glance import (
    called,
    clipped,
    glance,
    indented,
    input_name,
    raised_where,
    shortened,
    source_around,
    source_of_vjp,
)
from .goals import ToAnotherLayer, ToReplay, ToStep, ToTheEnd, ToWord, words_for
from .journey import Journey
from .rehearsal import is_under_a_budget, peak_ahead
from .render import render

ABOUT = (
    "A beginning that is unambiguous will do: n, u tanh, c. An empty line repeats the last command.",
    "A stop shows the step's number; the op, its node's number, your line, the layer. live: activations",
    "that the tape holds now, and their bytes. freed: bytes of buffers that it let go of in this step.",
)
ROWS = 15  # lines of the tape, and of saved, that are shown if nobody asks for all


def debug(loss, gradient=None, retain_graph=False):
    """Walk backward from `loss` at a prompt, step by step; at the end leaves have their `.grad`.

    loss, gradient, retain_graph  as in mg.steps

    Each stop shows the step's number, the op with its node's number, your line, the layer; how many activations the
    tape holds after it, and the bytes it has let go of. `help` lists the commands. `quit`, or the end of the input,
    gives the walk up: no `.grad` is touched. If the walk fails, the error is shown with your line, you can look
    around, and when you quit it is raised.

    Raises what mg.steps raises.

    >>> import io, sys
    >>> import minigrad as mg
    >>> x = mg.tensor(2.0, requires_grad=True, name="x")
    >>> y = mg.tanh(x)
    >>> keyboard, sys.stdin = sys.stdin, io.StringIO("next\\ngrad x\\nquit\\n")
    >>> mg.debug(y)  # doctest: +NORMALIZE_WHITESPACE
       0  start at tanh #...  <doctest minigrad.view.stepper.debug[...]>:1    live 1 (4 B)
    Type help for the commands.
    (step) next
       1  tanh #...  <doctest minigrad.view.stepper.debug[...]>:1    live 0 (0 B)    freed 4 B
    That was the last node. next gives the leaves their .grad.
    (step) grad x
    x #...: float32[]  0.0707 (so far; added to .grad at the end)
    (step) quit
    Left after step 1: no .grad has been touched.
    Buffers that were passed are gone; run the forward again before another backward.
    >>> sys.stdin = keyboard
    >>> x.grad is None
    True
    """
    sweep = start(loss, gradient, retain_graph, create_graph=False, watched=True)
    deque(Stepper(sweep, [loss.node]).walk(), maxlen=0)


class Stepper(cmd.Cmd):
    """The prompt around one walk.

    left  the user has quit, so the walk was given up
    over  no step can be taken any more: the user has quit, or a step has failed
    """

    prompt = "(step) "

    def __init__(self, sweep, origins):
        self.terminal = sys.stdin is not None and sys.stdin.isatty()
        super().__init__(completekey="tab" if self.terminal else None)
        self.journey = Journey(sweep, origins)
        self.goal = ToStep(0)
        self.left = self.over = False

    # ---- the walk ----------------------------------------------------------------------------------

    def walk(self):
        """Yield the fields of each Step, as the walk inside does; stop and ask wherever the goal is reached."""
        try:
            self.say(self.journey.moment.line())
            self.say("Type help for the commands.")
            self.ask()
            while not self.left:
                try:
                    fields = self.step()
                except StopIteration:
                    self.say(self.ending())
                    return
                except Exception as error:
                    self.fail(error)
                    raise
                if self.is_a_stop():
                    self.show_stop()
                    self.ask()
                if not self.left:
                    yield fields
            self.say(self.farewell())
        finally:
            self.journey.steps.close()

    def step(self):
        """Take one step; look closely if it may be the last before a stop."""
        node, number = self.journey.ahead(), self.journey.moment.number + 1
        closely = node is not None and (self.goal.reached(number, "op", node) or len(self.journey.sweep.heap) == 1)
        return self.journey.step(closely, remember=not isinstance(self.goal, ToTheEnd))

    def is_a_stop(self) -> bool:
        """Whether the goal is reached; or the last node is swept, after which leaves get their gradients."""
        moment = self.journey.moment
        if self.goal.reached(moment.number, moment.kind, moment.node):
            return True
        return self.at_last_node() and not isinstance(self.goal, ToTheEnd)

    def at_last_node(self) -> bool:
        return self.journey.ahead() is None and self.journey.moment.kind != "leaf"

    def show_stop(self):
        moment = self.journey.moment
        self.say(moment.line())
        if moment.fresh:
            self.say(indented(moment.told_of_replay(), " " * 6))
        if self.at_last_node():
            more = "ends the walk" if self.is_grad() else "gives the leaves their .grad"
            self.say(f"That was the last node. next {more}.")

    def ask(self):
        """Take commands until one of them goes on, or quits."""
        delimiters = change_delimiters(" ") if self.terminal else None  # words have dots and a # in them
        asking = True
        while asking:
            try:
                self.cmdloop()
                asking = False
            except KeyboardInterrupt:
                self.say("\n(interrupted; quit gives the walk up)")
        if delimiters is not None:
            change_delimiters(delimiters)

    def fail(self, error):
        """A step has failed: say why, with the user's line, and let them look around."""
        self.over = True
        moment = self.journey.moment
        if moment.kind == "error":
            self.say(moment.line())
            if moment.node.where is not None:
                self.say(*source_around(moment.node.where))
        self.say(*raised_where(error))
        self.say("The walk is over, and no .grad has been touched. You can still look around; quit raises the error.")
        self.ask()

    def ending(self) -> str:
        done = "mg.grad has its gradients" if self.is_grad() else "the leaves have their .grad"
        moment, live = self.journey.moment, self.journey.ledger.live_activations
        return f"The end, after step {moment.number}: {done}. Live now: {live}."

    def is_grad(self) -> bool:
        """Whether this is the walk of a mg.grad, which gives no leaf anything."""
        return self.journey.sweep.destination.wanted is not None

    def farewell(self) -> str:
        moment, sweep = self.journey.moment, self.journey.sweep
        if moment.kind == "leaf":
            return f"Left after step {moment.number}: the walk was done, and all leaves have their .grad."
        if moment.number == 0:
            return "Left before the first step: nothing has happened."
        text = f"Left after step {moment.number}: no .grad has been touched"
        if sweep.retain_graph:
            return f"{text}, and the tape is as it was."
        return f"{text}.\nBuffers that were passed are gone; run the forward again before another backward."

    # ---- commands that go on -------------------------------------------------------------------------

    def do_next(self, words):
        """next [N]: take one step, or N"""
        if not words.isdecimal() and words:
            return self.say(f"next takes a number of steps, not {words!r}")
        return self.go(ToStep(self.journey.moment.number + max(1, int(words or 1))))

    def do_layer(self, _):
        """layer: go on to another layer"""
        moment = self.journey.moment
        return self.needs_a_node() and self.go(ToAnotherLayer("" if moment.kind == "start" else moment.node.layer))

    def do_until(self, word):
        """until WORD: go on to an op (tanh), a layer (blocks.3), a name (w: to where a vjp gives the leaf w a
        gradient), a node (#17) or a line (train.py:41)"""
        if not word:
            return self.say("until what? An op, a layer, the name of a tensor or a leaf, #17, or train.py:41")
        if self.journey.ahead() is not None and word not in self.words_ahead():
            close = difflib.get_close_matches(word, self.words_ahead(), 1)
            hint = f" Is it {close[0]}?" if close else ""
            return self.say(f"Nothing in the rest of this walk is called {word!r}.{hint}")
        return self.go(ToWord(word))

    def do_replay(self, _):
        """replay: go on to the next replay of a checkpoint"""
        if self.needs_a_node():
            if any(node.body is not None for node in self.journey.to_come()):
                return self.go(ToReplay())
            self.say("There is no checkpoint in the rest of this walk.")

    def do_peak(self, _):
        """peak: go to the step in which the most activations are live. To find it, the rest of the walk is rehearsed:
        its vjps run once more than they will anyway, hooks do not"""
        if self.over:
            return self.go(ToStep(0))
        if not self.needs_a_node():
            return None
        if is_under_a_budget(self.journey.roots()):
            return self.say("Under a memory budget it is not known beforehand: a rehearsal would evict other buffers.")
        try:
            ahead, highest = peak_ahead(self.journey.sweep, self.journey.roots())
        except Exception as error:
            return self.say(f"The rest of this walk fails, so its peak is not known. {type(error).__name__}: {error}")
        if not ahead:
            return self.say(f"It is here: {highest} are live, and never more in the rest of this walk.")
        return self.go(ToStep(self.journey.moment.number + ahead))

    def do_continue(self, _):
        """continue: go on to the end; leaves get their .grad"""
        return self.go(ToTheEnd())

    def do_quit(self, _):
        """quit: give the walk up; no .grad is touched"""
        self.left = self.over = True
        return True

    def do_EOF(self, _):
        """The end of the input."""
        self.say("" if self.terminal else "(end of the input)")
        return self.do_quit(_)

    def go(self, goal):
        """Leave the prompt, to go on to `goal`; not if the walk has failed."""
        if self.over:
            self.say("The walk is over: its last step failed. quit raises the error.")
            return None
        self.goal = goal
        return True

    def needs_a_node(self) -> bool:
        """Whether there is a node to come; says so if there is not."""
        if self.journey.ahead() is None and not self.over:
            self.say("No node is left, only leaves: next or continue.")
            return False
        return True

    # ---- commands that look --------------------------------------------------------------------------

    def do_where(self, _):
        """where: your line in the source, and the vjps that ran"""
        moment = self.journey.moment
        node = moment.node
        self.say(clipped(moment.what()))
        if node.where is None:
            return self.say(f"A {node.role}: no op made it, so the tape has no line for it.")
        self.say(*source_around(node.where))
        if node.number in self.journey.made_by:
            self.say(indented(f"replayed for the {self.journey.made_by[node.number]}", ""))
        for index, vjp in node.needs.vjps:
            self.say(f"gradient to {input_name(node, index)}: {source_of_vjp(vjp.function)[0]}")
            self.say(*source_of_vjp(vjp.function)[1:])

    def do_values(self, _):
        """values: of the node in hand: the gradient that came, what its vjps read, the gradients that they gave"""
        moment = self.journey.moment
        node = moment.node
        self.say(clipped(moment.what()))
        if moment.kind == "start":
            return self.say(f"  gradient in  {self.journey.gradient_at(node)}")
        rows = [("gradient in", glance(moment.grad))]
        rows += [(f"read {name}", text) for name, text in moment.reads]
        vjps = node.needs.vjps if node.op is not None else ()
        if len(vjps) == len(moment.grads):  # a vjp may have given none, and then nothing says which
            for (index, _vjp), given in zip(vjps, moment.grads, strict=True):
                rows.append((f"to {input_name(node, index)}, {called(node.inputs[index])}", glance(given)))
        else:
            rows += [("to an input", glance(given)) for given in moment.grads]
        if moment.kind == "replay":
            rows.append(("handed on to", ", ".join(called(n) for n in moment.fresh if n in self.journey.sweep.grads)))
        width = max(len(name) for name, _ in rows)
        self.say(*(clipped(f"  {name:{width}}  {text}") for name, text in rows))

    def do_grad(self, word):
        """grad [NODE]: the gradient at a node (#17, or a name) as far as it is known; without NODE, at the one in
        hand"""
        nodes = [self.journey.moment.node] if not word else self.find(word)
        for node in nodes:
            self.say(indented(self.journey.gradient_at(node), f"{called(node)}: "))
        if not nodes:
            self.say(f"There is no node {word!r} on the tape of this moment; tape shows them.")

    def do_saved(self, words):
        """saved [all]: the buffers that backward will read, and for which nodes the tape keeps them"""
        lines = str(self.journey.saved()).splitlines()
        self.say(*(lines if words == "all" else shortened(lines, ROWS, "saved all")))

    def do_tape(self, words):
        """tape [all]: the tape where the walk is, fresh nodes of replays included; or all of it"""
        moment, everything = self.journey.moment, self.journey.tape().nodes
        shown = everything
        if words != "all":
            shown = [node for node in everything if node is moment.node or not self.journey.has_passed(node)][-ROWS:]
        rows = [
            ("->" if node is moment.node else "", f"#{node.number}", node.op.name if node.op else describe(node),
             " ".join(f"#{source.number}" for source in node.inputs if source.dtype is not None),
             shape_text(node), held_text(node), self.journey.state_of(node), node.layer, node.line)
            for node in shown
        ]  # fmt: skip
        note = "holds: bytes that the tape keeps of the value. gradient: waits there, or has passed on."
        if len(shown) < len(everything):
            note += f"\nThese are the youngest that are not passed; tape all shows {len(everything) - len(shown)} more."
        headers = ("", "node", "op", "reads", "value", "holds", "gradient", "layer", "line")
        self.say(table(headers, rows, right=(5,), note=note))

    def do_graph(self, path):
        """graph [FILE]: draw the tape of this moment into FILE; .svg, .png or .dot (default: step-N.svg)"""
        try:
            moment = self.journey.moment
            self.say(f"wrote {render(self.journey.roots(), path or f'step-{moment.number}.svg', at=moment)}")
        except (MinigradError, OSError) as error:
            self.say(f"No picture: {error}")

    def do_help(self, word):
        """help [COMMAND]: this list, or what one command does"""
        matches = self.commands(word)
        if word and not matches:
            return self.say(f"There is no command {word!r}; help lists them.")
        rows = [" ".join(getattr(self, f"do_{name}").__doc__.split()).split(": ", 1) for name in matches]
        width = max(len(usage) for usage, _ in rows)
        for usage, text in rows:
            self.say(indented(text, f"  {usage:{width}}  "))
        if not word:
            self.say(*ABOUT)

    # ---- how commands are read -----------------------------------------------------------------------

    def precmd(self, line):
        """Where the input is no terminal, repeat it, so that the output reads like a session."""
        if not self.terminal and line != "EOF":
            self.say(line)
        return line.strip()

    def emptyline(self):
        return self.onecmd(self.lastcmd) if self.lastcmd else None

    def default(self, line):
        """A line whose first word is no command: perhaps the beginning of one."""
        word, _, rest = line.partition(" ")
        matches = self.commands(word)
        if len(matches) == 1:
            return getattr(self, f"do_{matches[0]}")(rest.strip())
        return self.say(
            f"{word} may be {' or '.join(matches)}." if matches else f"There is no command {word!r}; help lists them."
        )

    def commands(self, beginning="") -> list:
        """The commands that begin so, in the order in which they are written here."""
        names = [name.removeprefix("do_") for name in vars(Stepper) if name.startswith("do_") and name != "do_EOF"]
        return [name for name in names if name.startswith(beginning)]

    def completenames(self, text, *_):
        return self.commands(text)

    def complete_until(self, text, *_):
        return sorted(word for word in self.words_ahead() if word.startswith(text))

    def complete_grad(self, text, *_):
        nodes = self.journey.tape().nodes
        words = {node.name for node in nodes if node.name} | {f"#{node.number}" for node in nodes if node.requires_grad}
        return sorted(word for word in words if word.startswith(text))

    def complete_help(self, text, *_):
        return self.commands(text)

    def words_ahead(self) -> set:
        """What the nodes that are to come can be called; `until` takes these."""
        words = set()
        for node in self.journey.to_come():
            if node.op is not None and not node.freed:
                found = words_for(node)
                words |= found if node.region is None else found - {f"#{node.number}"}  # its copy has another
        return words

    def find(self, word) -> list:
        """The nodes of this moment's tape with this number or name."""
        number = word.removeprefix("#")
        return [node for node in self.journey.tape() if word == node.name or number == str(node.number)]

    def say(self, *lines):
        print(*lines, sep="\n", file=self.stdout, flush=True)


def change_delimiters(delimiters):
    """Set what separates words for completion; returns what did before, or None where there is no readline."""
    try:
        import readline
    except ImportError:
        return None
    before = readline.get_completer_delims()
    readline.set_completer_delims(delimiters)
    return before
