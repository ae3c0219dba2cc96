// Every value of a run's config, and where it comes from.
import { html, useState } from "/web/lib/preact.js";
import { useLoaded } from "/web/lib/load.js";
import { Problem, Toggle, Waiting } from "/web/components/small.js";

export function Settings({ id }) {
  const found = useLoaded(`/api/runs/${id}/settings`);
  const [all, showAll] = useState(false);
  const [text, setText] = useState("");
  if (found.error) return html`<${Problem} text=${found.error} onRetry=${found.reload} />`;
  if (found.waiting) return html`<${Waiting} lines=${10} />`;
  const shown = found.data.settings.filter((one) => (text ? `${one.key} ${one.text}`.toLowerCase().includes(text.toLowerCase()) : all || !one.default));
  return html`
    <div class="controls">
      <input type="search" placeholder="key or value" aria-label="Search settings" value=${text} onInput=${(event) => setText(event.target.value)} />
      <${Toggle} on=${all} onChange=${showAll} title="Defaults, too">defaults</${Toggle}>
    </div>
    <table class="plain"><thead><tr><th>key</th><th>value</th><th>from</th></tr></thead>
      <tbody>${shown.map((one) => html`<tr key=${one.key} class=${one.default ? "dim" : ""}><td class="mono">${one.key}</td><td class="mono">${one.text}</td><td class="dim">${one.origin}</td></tr>`)}</tbody></table>
  `;
}
