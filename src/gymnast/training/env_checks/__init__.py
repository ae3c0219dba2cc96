"""What training notices about its envs: copies that play alike, episodes that never end, presets that do not work."""
