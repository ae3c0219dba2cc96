"""How `gymnast eject` builds a script: what it must know of a run, and the template pieces it is assembled from."""
