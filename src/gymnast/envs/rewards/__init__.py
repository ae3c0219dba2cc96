"""Terms of the reward: what is learned from besides the env's own reward (ENV-9).

A term of your own is a class derived from `Term` or `Potential`, or a function that takes `Steps` and gives
one number per env copy.
"""

from gymnast.envs.rewards.steps import States, Steps
from gymnast.envs.rewards.terms import Potential, Term

__all__ = ["Potential", "States", "Steps", "Term"]
