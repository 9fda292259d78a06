__version__="0.1.0"
from .tensor import Tensor
from .create import tensor, ones
from .ops import *
from .sweep import steps, grad
from .checkpoint import checkpoint, checkpoint_sequential
from .tracer import Tracer
from . import schedules
from .tape import Tape
from .op import op
from .saved import saved, tape
