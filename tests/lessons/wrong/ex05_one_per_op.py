# Believes that an op keeps one buffer, whatever its vjp names, unless it names nothing.
def buffers_kept(reads):
    return sum(1 for named in reads if named)
