"""Trackers: where the numbers of a run are shown besides its own folder. Only the process that sends imports their packages."""
