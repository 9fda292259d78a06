from ..tensor import Tensor
from . import elementwise as e, linalg as l, reduce as r, shape as s
class M:
    def __add__(a,b): return e.add(a,b)
    def __mul__(a,b): return e.mul(a,b)
    __rmul__=__mul__
    def __matmul__(a,b): return l.matmul(a,b)
    def sum(a,axis=None,keepdims=False): return r.sum(a,axis=axis,keepdims=keepdims)
    def swapaxes(a,i,j): return s.swapaxes(a,i,j)
for k,v in vars(M).items():
    if k not in('__dict__','__weakref__','__module__','__doc__','__qualname__','__firstlineno__','__static_attributes__'): setattr(Tensor,k,v)
