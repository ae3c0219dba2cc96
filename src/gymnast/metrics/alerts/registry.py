"""All rules: ours, and those of packages in the entry point group `gymnast.alerts`."""

from __future__ import annotations

from gymnast import plugins
from gymnast.metrics.alerts import bounds, critic, exploration, health, machine, progress, reward
from gymnast.metrics.alerts.alert import SEVERITIES, Rule

SHIPPED: tuple[Rule, ...] = (
    *bounds.RULES,
    *health.RULES,
    *critic.RULES,
    *exploration.RULES,
    *reward.RULES,
    *progress.RULES,
    *machine.RULES,
)


def all_rules() -> list[Rule]:
    """Every rule by id; an entry point names a `Rule` or several, and shipped ids win."""
    rules = {one.id: one for one in SHIPPED}
    for plugin in plugins.installed(plugins.ALERTS):
        for one in _rules_of(plugin):
            rules.setdefault(one.id, one)
    return [rules[name] for name in sorted(rules)]


def _rules_of(plugin: plugins.Plugin) -> list[Rule]:
    found = plugins.load(plugin)
    if isinstance(found, Rule):
        rules = [found]
    elif isinstance(found, (list, tuple)):
        rules = list(found)
    else:
        rules = []
    if not rules or not all(isinstance(one, Rule) and one.severity in SEVERITIES for one in rules):
        raise plugins.PluginError(f"The {plugin} is neither a gymnast Rule nor a list of them.")
    return rules
