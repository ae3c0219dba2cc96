// Verdict, alerts with advice, likely causes, and the next experiment.
import { html } from "/web/lib/preact.js";
import { useLoaded } from "/web/lib/load.js";
import { count, number, percent } from "/web/lib/format.js";
import { Command, Empty, Problem, Waiting } from "/web/components/small.js";

export function Health({ id }) {
  const found = useLoaded(`/api/runs/${id}/diagnosis`);
  if (found.error) return html`<${Problem} text=${found.error} onRetry=${found.reload} />`;
  if (found.waiting) return html`<${Waiting} lines=${5} />`;
  const { health, verdict, alerts, causes, experiment } = found.data;
  const likely = causes.filter((cause) => cause.confidence >= 0.01).slice(0, 3);
  return html`<div class="health">
    <p class=${`verdict ${health}`}><b>${health}</b>${verdict}</p>
    ${alerts.length === 0 && html`<${Empty} title="No alerts"><p>None of the rules found anything in this run.</p></${Empty}>`}
    ${alerts.map((alert) => html`<${AlertCard} key=${alert.id} alert=${alert} />`)}
    ${likely.length > 0 && html`<section><h2>Likely causes</h2><ol class="causes">${likely.map((cause) => html`<${Cause} cause=${cause} />`)}</ol></section>`}
    ${experiment && html`<section><h2>Next experiment</h2><p>${experiment.expects}</p><${Command} text=${experiment.command} /></section>`}
  </div>`;
}

function AlertCard({ alert }) {
  return html`<article class=${`alert ${alert.severity}`}>
    <header><b>${alert.message}</b><span class="space"></span><code>${alert.id}</code></header>
    <p>${alert.means}</p>
    <ul>${alert.advice.map((line) => html`<li>${line}</li>`)}</ul>
    <footer>${alert.count} ${alert.count === 1 ? "time" : "times"}, first at ${count(alert.first_step)} and last at ${count(alert.last_step)} env steps
      ${Object.entries(alert.numbers).map(([name, value]) => html`<span class="fact">${name} ${number(value)}</span>`)}</footer>
    <${Command} text=${alert.rewind} />
  </article>`;
}

function Cause({ cause }) {
  return html`<li><b>${cause.title}</b> <em>${percent(cause.confidence)}</em><p>${cause.why}</p>
    <ul>${cause.evidence.map((one) => html`<li class=${one.weight > 0 ? "for" : "against"}>${one.says}</li>`)}</ul></li>`;
}
