"""Sending a run's numbers to trackers, while it trains (`sender`, a process of its own) or later (`gymnast sync`)."""
