"""A run that begins with the weights of another one."""
