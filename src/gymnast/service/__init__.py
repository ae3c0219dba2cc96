"""Reading runs, configs, envs and metrics, and starting processes: what command line, Python API and servers share.

| module | what it answers |
|---|---|
| `runs`, `progress` | which runs there are, the best of them, all that is known of one, how far one is |
| `settings`, `configs` | every value of a run or of a config with its origin; lists, search, checks |
| `metrics`, `frames` | curves as arrays, thinned for a screen or only what is new; tables and frames |
| `compare`, `statistics` | runs side by side, seeds as groups with mean, interquartile mean and interval |
| `envs`, `env_card` | which envs there are, and the spec card of one |
| `processes` | start `python -m gymnast …`, find its run, stop it |
| `plain` | any result as JSON |

Importing a module of this layer imports neither torch nor Gymnasium. Results are frozen dataclasses.
"""
