"""Whether an env keeps the promises that training relies on; each broken one with its line in the env's source (ENV-12)."""
