def manual_seed(n): pass
import numpy as np, weakref
from .tensor import Tensor, frozen, check_float
from .tape import Leaf
def tensor(data, dtype=None, device=None, requires_grad=False, name=None):
    a=np.array(data, dtype=dtype)
    if a.dtype==np.float64 and dtype is None and not isinstance(data,(np.ndarray,np.generic)): a=a.astype(np.float32)
    t=Tensor(frozen(a))
    if requires_grad: check_float(a.dtype); t._node=Leaf(a,True,weakref.ref(t),name)
    elif name: t.name=name
    return t
def ones(*s, **k): return tensor(np.ones(s,np.float32), **k)
