"""Faults made on purpose, for the tests of recovery and for `benchmarks/chaos.py`.

`points` names places in the code and what can go wrong there, `server` runs the real `gymnast` command in child processes
with such faults in them, and `files` damages what lies on disk. The product itself knows nothing of this.
"""
