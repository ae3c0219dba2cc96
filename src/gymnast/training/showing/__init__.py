"""What a run shows of itself at its end: films and tables of episodes, and its report."""
