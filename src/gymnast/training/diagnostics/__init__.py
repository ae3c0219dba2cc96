"""Looking at a run from outside: where time goes, what an update computed, whether presets train."""
