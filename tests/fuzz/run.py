"""Random programs for as long as you like: `make fuzz N=10` runs ten minutes and prints what it found.

Programs with checkpoints run against their plain twins; then a fault is thrown into some of them at a random engine
call, and a real signal at a random moment. What fails is shrunk and printed as code that runs.
"""

import argparse
import collections
import gc
import random
import sys
import time

from hypothesis import HealthCheck, Phase, given, seed, settings

from .faults import Thrower, calls_of, interrupted, thrown
from .programs import EVERYTHING, differences, programs, write

REPRODUCER = '''
import gc
from tests.fuzz.programs import differences

gc.disable()
TEXT = """
{text}"""
print(differences(TEXT, {form!r}, {budget!r}))
# {wrong}
'''
QUIET = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "report_multiple_bugs": False}


class Fuzz:
    """What ten minutes find: counts of programs, faults and signals, and the shrunk failures."""

    def __init__(self, minutes, first_seed):
        self.end, self.seed = time.monotonic() + 60 * minutes, first_seed
        self.counts, self.failures, self.random = collections.Counter(), [], random.Random(first_seed)

    def run(self, batch=200):
        while time.monotonic() < self.end:
            self.compare(batch)
            print(f"seed {self.seed}: {dict(self.counts)}, {len(self.failures)} kinds of failure", flush=True)
            self.seed += 1

    def compare(self, batch):
        """One batch of programs from one seed; the smallest that fails is kept."""
        failed = {}

        def check(drawn):
            if time.monotonic() > self.end + 60:
                return  # a shrink that takes too long ends here
            steps, form, budget = drawn
            text = write(steps)
            self.counts["programs"] += 1
            wrong = differences(text, form, budget)
            if wrong is not None:
                failed["last"] = text, form, budget, wrong
            elif self.random.random() < 0.2:
                self.disturb(text, form, budget)
            assert wrong is None

        phases = (Phase.generate, Phase.shrink)
        test = seed(self.seed)(settings(max_examples=batch, phases=phases, **QUIET)(given(programs(EVERYTHING))(check)))
        try:
            test()
        except AssertionError:
            text, form, budget, wrong = failed["last"]
            self.failures.append(wrong)
            print(REPRODUCER.format(text=text, form=form, budget=budget, wrong=wrong.replace("\n", " ")), flush=True)

    def disturb(self, text, form, budget):
        """A fault at a random engine call, and a signal at a random moment."""
        calls, start = calls_of(text, form, budget), time.perf_counter()
        error = self.random.choice([KeyboardInterrupt, MemoryError])
        place = self.random.randint(1, calls)
        self.report(thrown(text, form, budget, Thrower(place, error)), text, form, f"{error.__name__} at call {place}")
        seconds = self.random.uniform(1e-5, time.perf_counter() - start)
        self.report(interrupted(text, form, budget, seconds), text, form, f"a signal after {seconds:.5f} s")
        self.counts["faults"] += 1
        self.counts["signals"] += 1

    def report(self, wrong, text, form, how):
        if wrong is not None:
            self.counts["faults that left something behind"] += 1
            if wrong not in self.failures:
                self.failures.append(wrong)
                print(f"{wrong}\n({how}, form {form})\n{text}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    gc.disable()  # everything must die by reference count
    fuzz = Fuzz(options.minutes, options.seed)
    fuzz.run()
    print(f"\n{dict(fuzz.counts)}; {len(fuzz.failures)} kinds of failure")
    for wrong in fuzz.failures:
        print("  " + wrong.splitlines()[0][:200])
    sys.exit(bool(fuzz.failures))


if __name__ == "__main__":
    main()
