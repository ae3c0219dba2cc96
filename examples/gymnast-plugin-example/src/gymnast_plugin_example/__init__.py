"""An env, wrappers and an algorithm for gymnast."""
