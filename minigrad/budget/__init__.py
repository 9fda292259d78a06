"""A memory budget at run time: evict what does not fit, and compute it again."""
