"""What went wrong in a run, why, and what to try next: from its config, its metrics and the alerts they raise.

`causes` lists what can be the matter and what speaks for it, `rank` weighs the evidence, `experiment` turns the first cause
into a command, `diagnosis` puts it together.
"""
