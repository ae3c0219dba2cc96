"""Evaluations of a run while it trains: when, on what, by whom, and what follows from them."""
