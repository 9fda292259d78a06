"""Looking at a reader's exercises: what was expected, what came, where to look.

For lesson 07 there are three files: `lessons/exercises/ex07_name.py` with the blanks, the same name in
`lessons/solutions/`, and `lessons/checks/check_07.py`. Each function `check_peak(answers)` of the last one looks at
the function `peak` of the module that it is given, and says by a failing assert what is not right.
"""

import importlib.util
import sys
import traceback
import types
import warnings

from ..ops.keys import manual_seed


def file_of(number, kind, folder):
    """The file of a lesson in "exercises", "solutions" or "checks", or None."""
    pattern = f"check_{number}.py" if kind == "checks" else f"ex{number}_*.py"
    return next(iter(sorted((folder / kind).glob(pattern))), None)


def load(path):
    """A file as a module, whatever is on sys.path; each call runs it afresh."""
    name = f"{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def functions_of(module) -> dict:
    """name -> function, of those that a module defines itself, without the ones that begin with an underscore."""
    members = vars(module).items()
    own = {name: f for name, f in members if isinstance(f, types.FunctionType) and f.__module__ == module.__name__}
    return {name: function for name, function in own.items() if not name.startswith("_")}


def checks_of(path) -> dict:
    """name of the function that is looked at -> its check, in the order of the file."""
    found = functions_of(load(path))
    return {name.removeprefix("check_"): check for name, check in found.items() if name.startswith("check_")}


def shortcoming(name, check, answers) -> str:
    """What is not right with the function `name` of the module `answers`, in words; "" if nothing is."""
    if not hasattr(answers, name):
        return f"the function {name} is missing: it has to keep its name"
    manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check(answers)
        except (AssertionError, NotImplementedError) as error:
            return str(error) or f"{type(error).__name__} without a message"
        except Exception as error:
            return error_in_words(error, answers.__file__)
    return ""


def error_in_words(error, file) -> str:
    """An error with the line of `file` that led to it, and with nothing of the engine."""
    words = "".join(traceback.format_exception_only(error)).strip()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == str(file):
            return f"{words}\nin {frame.name}, line {frame.lineno}: {frame.line}"
    return words


def look_at(name, number, folder) -> str:
    """What is not right with the function `name` among the reader's exercises of a lesson; "" if nothing is."""
    file = file_of(number, "exercises", folder)
    try:
        answers = load(file)
    except Exception as error:
        return f"{file.name} cannot be imported: {error_in_words(error, file)}"
    return shortcoming(name, checks_of(file_of(number, "checks", folder))[name], answers)


def report(number, folder) -> int:
    """Print what is right and what is not yet; returns 1 if anything is not."""
    file, checks = file_of(number, "exercises", folder), file_of(number, "checks", folder)
    if file is None or checks is None:
        print(f"lesson {number} has no exercises")
        return 0
    print(f"{file}\n")
    shortcomings = 0
    for name in checks_of(checks):
        words = look_at(name, number, folder)
        print(f"  {name}: {'not yet' if words else 'right'}")
        if words:
            shortcomings += 1
            print("      " + words.replace("\n", "\n      ") + "\n")
    if not shortcomings:
        print(f"\nAll right. Read {file_of(number, 'solutions', folder)} beside yours.")
    return 1 if shortcomings else 0
