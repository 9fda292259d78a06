"""Where the user's program is: the innermost source line outside minigrad.

A position is a code object and the offset of an instruction in it. Never a frame: that would keep every
variable of a function alive.
"""

import os
import sys


def _engine_files():
    """The files whose frames are not the user's: all of the package but the programs in it."""
    files = set()
    for folder, _, names in os.walk(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))):
        files.update(os.path.join(folder, name) for name in names if name.endswith(".py"))
    return {file for file in files if os.path.basename(file) not in ("demo.py", "gallery.py")}


ENGINE_FILES = _engine_files()


def user_position():
    """The user's position now, as (code object, instruction offset)."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename in ENGINE_FILES and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


def line_number(where) -> int:
    """The line number of a position."""
    code, offset = where
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def source_line(where) -> str:
    """A position as "train.py:41"; "" for None."""
    return "" if where is None else f"{os.path.basename(where[0].co_filename)}:{line_number(where)}"
