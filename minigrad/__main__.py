"""The command line: `python -m minigrad COMMAND`."""

import argparse
import importlib
import sys

COMMANDS = {
    "demo": ("demo", "a hundred live activations become nineteen, on real digits"),
    "play": ("play", "run a script, and write a page in which one plays its first backward back and forth"),
    "step": ("step", "run a script, and step through its first backward at a prompt"),
    "plan": ("plan", "what a schedule of checkpoints costs, as a tree or as code; all schedules compared"),
    "lessons": ("lessons", "the course: list its lessons, open or run one, look at your exercises"),
    "pictures": ("pictures", "draw the pictures of the README and of the lessons again"),
    "ops": ("ops", "every op: what its gradients read, and whether they can be differentiated again"),
}


def main():
    parser = argparse.ArgumentParser(
        prog="python -m minigrad",
        description="minigrad's programs; each has a --help of its own.",
        epilog="\n".join(f"  {name:8} {what}" for name, (_, what) in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS)
    options = parser.parse_args(sys.argv[1:2] or ["--help"])
    return importlib.import_module(f"minigrad.commands.{COMMANDS[options.command][0]}").main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
