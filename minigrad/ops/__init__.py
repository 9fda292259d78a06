"""The ops, by family. Each is a forward, and a vjp for each input; see op.py for how to read one."""

from . import methods as _methods  # noqa: F401  (gives Tensor its operators and methods)
from .elementwise import *  # noqa: F403
from .linalg import *  # noqa: F403
from .reduce import *  # noqa: F403
from .shape import *  # noqa: F403
