# Counts a buffer once for each vjp that names it, as if each reader had a copy.
def buffers_kept(reads):
    return sum(len(named) for named in reads)
