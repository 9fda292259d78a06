"""The engine: recording ops on a tape, and the sweep backward over it."""
