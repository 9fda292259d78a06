"""`python -m minigrad plan`: what a schedule does with a chain of layers and what it costs; or many, compared.

Nothing is run. Plans are counted on the reference chain, where each layer keeps its input; the time factor takes every
layer's backward for two forwards.
"""

import argparse
import ast
import difflib
import inspect
import json
import os
import sys
import textwrap

from .. import schedules
from ..errors import ArgumentError, BudgetError, MinigradError
from ..schedules import Schedule, as_schedule
from ..schedules.report import as_text, counted, figures
from ..table import WIDTH, table

MOST_LAYERS = 100_000  # for more, the deepest trees take long to count
ALL_ROWS = 1_000_000
NOT_FROM_TEXT = ("as_schedule", "hetero", "from_json")  # what these take is no number
EXAMPLES = "'uniform(10)', triangular or 'offloaded(every(1), window=2)'"
LONGEST = 500  # characters of a schedule
ASCII = str.maketrans("├│└─…", "||`-~")


# ---- A schedule from text ----------------------------------------------------------------------------


def functions() -> dict:
    """name -> function, for all functions of mg.schedules that make a schedule of numbers and other schedules."""
    public = {name: getattr(schedules, name) for name in schedules.__all__ if name not in NOT_FROM_TEXT}
    return {name: made for name, made in public.items() if inspect.isfunction(made) and makes_schedules(made)}


def makes_schedules(function) -> bool:
    return inspect.signature(function).return_annotation is Schedule


def usage(name) -> str:
    """How a schedule is written: `nested(k, early_stop=True)`."""
    parameters = inspect.signature(functions()[name]).parameters.values()
    return f"{name}({', '.join([str(p.replace(annotation=p.empty)) for p in parameters])})"


def parse_schedule(text) -> Schedule:
    """The schedule that text such as `uniform(10)`, `triangular` or `offloaded(every(1), window=2)` describes.

    The text is never evaluated: it may name functions of mg.schedules, numbers and True or False, and nothing else.
    ArgumentError for what is not so, and what the function says of numbers that it cannot take.

    >>> parse_schedule("offloaded(every(10), window=2)"), parse_schedule("triangular"), parse_schedule("10")
    (offloaded(every(10), window=2), triangular(), uniform(10))
    """
    text = text.strip()
    try:
        if len(text) > LONGEST:
            raise ValueError("too long")
        expression = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ArgumentError(f"cannot read {text!r:.60} as a schedule; write one like {EXAMPLES}") from None
    return as_schedule(value_of(expression, text))


def value_of(expression, text):
    """The schedule, number or truth value that a parsed expression in `text` stands for."""
    if isinstance(expression, ast.Name):
        return call(expression.id, [], {})
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name):
        arguments = [value_of(argument, text) for argument in expression.args]
        settings = {setting.arg or "**": value_of(setting.value, text) for setting in expression.keywords}
        return call(expression.func.id, arguments, settings)
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError):
        part = ast.get_source_segment(text, expression)
        raise ArgumentError(f"{part!r:.60} has no place in a schedule; write one like {EXAMPLES}") from None


def call(name, arguments, settings) -> Schedule:
    """`name(*arguments, **settings)`, if there is such a schedule and it takes such arguments."""
    known = functions()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        raise ArgumentError(f"there is no schedule {name!r:.40}; {hint}")
    try:
        inspect.signature(known[name]).bind(*arguments, **settings)
    except TypeError as error:
        raise ArgumentError(f"{name}: {error}; write {usage(name)}") from None
    return known[name](*arguments, **settings)


# ---- Many schedules ----------------------------------------------------------------------------------

LEGEND = (
    "M: most activations alive at any moment. between: the same between two layers, as most papers count. "
    "R: layers that are replayed. forwards: layers that are run in all. time: against storing all, if a backward takes "
    "two forwards."
)
FEWEST = (
    "fewest: what optimal(M) replays, or binomial(M) where its peak is M as well; * marks schedules that replay no "
    "more."
)
SLOW = "slow: most activations in slow memory. written, read: how many go there and come back; the time is without."


def to_compare(n, budget=None) -> list:
    """Texts of schedules that are worth comparing for n layers, with settings that suit n, and the budget if any."""
    segments = best_segments(n)
    top, equal = (schedule.plan(n).peak for schedule in (schedules.triangular(), schedules.uniform(segments)))
    texts = ["store_all()", "sqrt()", "triangular()", "from_input()", "bisection()", "nested(4)", "nested(8)"]
    texts += [f"uniform({segments})", f"torch_compatible({segments})", f"every({-(-n // segments)})"]
    texts += [f"optimal({slots})" for slots in sorted({top, equal, *powers_of_two(4, top)}) if slots > 2]
    for peak in [8] * (n > 8) + [top] * (n > top > 2) + [budget] * (budget is not None):
        texts += [f"binomial({max(2, peak - 1)})", f"mixed({max(1, peak - 2)})", f"online({max(1, peak - 1)})"]
    if budget is not None:
        texts += [f"optimal({budget})", f"binomial({budget})"]
    few = max(1, min(8, top // 3))
    texts += ["offloaded(every(1))", "offloaded(sqrt())", "offloaded(sqrt(), window=2)"]
    texts += [f"multistage({few}, {few})", f"h_revolve({few}, {few})"]
    return list(dict.fromkeys(texts))


def best_segments(n) -> int:
    """The number of equal segments with the least peak; of those with the fewest replays; of those the most equal."""
    root = int(n**0.5)
    candidates = range(max(1, root // 2), min(n, 2 * root + 2) + 1)
    plans = [(k, schedules.uniform(k).plan(n)) for k in candidates]
    return min([(plan.peak, plan.extra_forwards, k + -(-n // k), k) for k, plan in plans])[-1]


def powers_of_two(first, end) -> list:
    return [2**power for power in range(first.bit_length() - 1, end.bit_length()) if first <= 2**power < end]


class Comparison:
    """Plans of many schedules for `layers` layers, those with the highest peak first.

    fast, slow  plans within the budget, without and with slow memory
    over        plans that are not within it
    left_out    (text, error) of schedules that have no plan for so many layers
    fewest      peak -> the fewest replays that are known for it, None for none
    """

    def __init__(self, layers, texts, budget=None):
        self.layers, self.budget = layers, budget
        self.fast, self.slow, self.over, self.left_out = [], [], [], []
        for text in texts:
            try:
                plan = parse_schedule(text).plan(layers)
            except MinigradError as error:
                self.left_out.append((text, error))
                continue
            is_over = budget is not None and plan.peak > budget
            (self.over if is_over else self.slow if plan.writes else self.fast).append(plan)
        for plans in (self.fast, self.slow, self.over):
            plans.sort(key=order)
        self.fewest = {peak: fewest_replays(layers, peak) for peak in {plan.peak for plan in self.fast}}

    def is_best(self, plan) -> bool:
        """Whether no schedule is known that replays less with the same peak."""
        fewest = self.fewest.get(plan.peak)
        return fewest is not None and plan.extra_forwards <= fewest

    def as_text(self) -> str:
        parts = [f"Schedules for {counted(self.layers, 'layer')}"]
        if self.budget is not None:
            parts[0] += f", at most {counted(self.budget, 'activation')}; {len(self.over)} more need more than that"
        if self.fast:
            rows = [(*common_cells(plan), self.fewest_text(plan), "*" * self.is_best(plan)) for plan in self.fast]
            parts.append(table((*HEADERS, "fewest", ""), rows, right=range(1, 7)))
        if self.slow:
            rows = [(*common_cells(p), f"{p.slow_peak:,}", f"{p.writes:,}", f"{p.reads:,}") for p in self.slow]
            parts.append(table((*HEADERS, "slow", "written", "read"), rows, right=range(1, 9)))
        notes = [LEGEND] + [FEWEST] * bool(self.fast) + [SLOW] * bool(self.slow)
        parts.append(textwrap.fill(" ".join(notes), WIDTH))
        if self.left_out:
            lines = [textwrap.fill(f"{text} is left out: {error}", WIDTH) for text, error in self.left_out]
            parts.append("\n".join(lines))
        if self.budget is not None:
            parts.append(self.conclusion())
        return "\n\n".join(parts)

    def fewest_text(self, plan) -> str:
        return "-" if self.fewest[plan.peak] is None else f"{self.fewest[plan.peak]:,}"

    def conclusion(self) -> str:
        """What to take within the budget."""
        lines, budget = [], counted(self.budget, "activation")
        if self.fast:
            lines.append(f"Fewest replays with at most {budget}: {fewest_of(self.fast)}")
        else:
            needed = min(plan.peak for plan in self.over if not plan.writes)
            names = [str(plan.schedule) for plan in self.over if plan.peak == needed and not plan.writes]
            lines.append(f"Without slow memory, none of these needs less than {needed:,}: {', '.join(names)}")
        if self.slow:
            lines.append(f"Fewest replays with at most {budget} and slow memory: {fewest_of(self.slow)}")
        return "\n".join([textwrap.fill(line, WIDTH) for line in lines])

    def as_json(self) -> str:
        """A list with an object for each plan: its numbers, and the fewest replays that are known for its peak."""
        rows = [{**figures(plan), "fewest": self.fewest.get(plan.peak)} for plan in self.fast]
        rows += [figures(plan) for plan in self.slow]
        return "[" + ",\n ".join(map(json.dumps, rows)) + "]"


HEADERS = ("schedule", "M", "between", "R", "forwards", "time")


def common_cells(plan) -> tuple:
    numbers = plan.peak, plan.peak_between_ops, plan.extra_forwards, plan.total_forwards
    return (str(plan.schedule), *[f"{number:,}" for number in numbers], f"{plan.time_factor:.2f}")


def fewest_of(plans) -> str:
    """How few layers the best of these plans replay, and under which schedules."""
    least = min(plan.extra_forwards for plan in plans)
    return f"{least:,}, by {', '.join([str(plan.schedule) for plan in plans if plan.extra_forwards == least])}"


def order(plan) -> tuple:
    return -plan.peak, plan.extra_forwards, str(plan.schedule)


def fewest_replays(layers, peak):
    """The fewest replays known for a peak, or None.

    `optimal` is strict in the first run too, where the tape does not count what it does not hold; so here and there
    `binomial` has the same peak for a replay less.
    """
    found = []
    for function in (schedules.optimal, schedules.binomial):
        try:
            plan = function(peak).plan(layers)
        except BudgetError:
            continue
        found += [plan.extra_forwards] * (plan.peak <= peak)
    return min(found, default=None)


# ---- The program -------------------------------------------------------------------------------------


def arguments_parser():
    names = textwrap.fill(", ".join(map(usage, functions())), WIDTH, initial_indent="  ", subsequent_indent="  ")
    parser = argparse.ArgumentParser(
        prog="python -m minigrad plan",
        description="What a schedule does with a chain of layers and what it costs; or many of them, compared.",
        epilog=f"schedules:\n{names}\n\nQuote what has parentheses: --schedule 'offloaded(every(1), window=2)'",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--layers", type=int, default=100, metavar="N", help="how many layers the chain has (100)")
    parser.add_argument("--schedule", metavar="S", help="the schedule (sqrt); with --compare, one row more")
    parser.add_argument("--depth", type=int, metavar="D", help="the first D levels of the tree, with all their rows")
    parser.add_argument("--compare", action="store_true", help="a table of many schedules for these layers")
    parser.add_argument("--budget", type=int, metavar="M", help="with --compare: only what keeps at most M activations")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument("--torch", action="store_true", help="print a PyTorch program with the same checkpoints")
    output.add_argument("--jax", action="store_true", help="print a JAX program with the same checkpoints")
    return parser


def checked(options):
    """Raise ArgumentError for options that do not go together, and for numbers out of range."""
    if options.layers > MOST_LAYERS:
        raise ArgumentError(f"--layers can be at most {MOST_LAYERS:,}, not {options.layers:,}")
    for name in ("depth", "budget"):
        number = getattr(options, name)
        if number is not None and number < 1:
            raise ArgumentError(f"--{name} must be at least 1, not {number}")
    if options.compare and (options.torch or options.jax or options.depth):
        raise ArgumentError("--compare is a table of many plans, without --torch, --jax and --depth; leave out either")
    if options.budget is not None and not options.compare:
        raise ArgumentError("--budget chooses from a table; add --compare")
    if options.depth and (options.torch or options.jax):
        raise ArgumentError("--depth cuts a tree, and a program needs all of it; leave out --depth")


def output(options) -> str:
    """What the program prints."""
    checked(options)
    layers, asked = options.layers, options.schedule
    plan = parse_schedule(asked or "sqrt").plan(layers)
    if options.compare:
        texts = to_compare(layers, options.budget)
        comparison = Comparison(layers, [asked, *texts] if asked else texts, options.budget)
        return comparison.as_json() if options.json else comparison.as_text()
    if options.torch or options.jax:
        return plan.torch_code() if options.torch else plan.jax_code()
    if options.json:
        return plan.to_json(options.depth)
    return as_text(plan) if options.depth is None else as_text(plan, options.depth, ALL_ROWS)


def write(text):
    """Print text; where the terminal has no lines to draw with, with signs that look like them."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(ASCII).encode(encoding, "replace").decode(encoding)
    try:
        print(text, flush=True)
    except BrokenPipeError:  # its reader, such as `head`, has read enough; nothing is to be written at the end either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments=None):
    """Print a plan or a comparison; returns the exit status, 2 for what cannot be planned."""
    options = arguments_parser().parse_args(arguments)
    try:
        text = output(options)
    except MinigradError as error:
        print(f"python -m minigrad plan: {error}", file=sys.stderr)
        return 2
    write(text)
    return 0
