"""How a run is kept, whatever trains in it: loop, rows, checkpoints, signals, and what a person sees."""
