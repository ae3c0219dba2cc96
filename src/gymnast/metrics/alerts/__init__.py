"""What looks wrong in a run while it trains, and what to change: rules over the metrics, the config and the env's facts.

`alert` says what a rule and an alert are, `course` what a rule may read of a metric's past, `facts` what it may read of the
config, `ordinary` which values of settings are usual. `watch` evaluates all rules once per row. One module per group of rules.
"""
