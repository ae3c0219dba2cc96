// What is known of a game at this moment, next to its picture. Rows keep their place, so that nothing jumps.
import { html, useRef } from "/web/lib/preact.js";
import { LiveCharts } from "/web/components/live-charts.js";

const WHOLE = new Intl.NumberFormat("en");
const FOUR_DIGITS = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const MOST_BARS = 9;
const MOST_TERMS = 8;
const MOST_RESULTS = 7;

export function Panel({ about, view, results, course }) {
  const terms = useTerms(view.terms);
  return html`<aside class="card playing">
    <dl>
      <${Row} name="episode" value=${view.episode} />
      <${Row} name="step" value=${view.step.toLocaleString("en")} />
      <${Row} name="return" value=${short(view.ret)} strong />
      <${Row} name="reward" value=${signed(view.reward)} />
      ${terms.map((name) => html`<${Row} key=${name} name=${name} value=${signed(view.terms[name])} small />`)}
      <${Row} name="action" value=${view.action || "–"} />
      ${about.modes.includes("policy") && html`<${Row} name="value" value=${short(view.value)} />`}
    </dl>
    ${view.probabilities.length > 0 && html`<${Bars} labels=${about.labels} shares=${view.probabilities} />`}
    <${LiveCharts} course=${course} hasValues=${about.modes.includes("policy")} />
    <h2>Episodes</h2>
    <dl>
      <${Row} name="played" value=${view.played} />
      <${Row} name="mean return" value=${short(view.mean)} />
      <${Row} name="last return" value=${short(view.last?.ret)} />
      <${Row} name="last length" value=${view.last ? view.last.length.toLocaleString("en") : "–"} />
    </dl>
    ${results.length > 0 && html`<table class="plain results"><thead><tr><th>seed</th><th>return</th><th>length</th><th>played by</th></tr></thead>
      <tbody>${results.slice(-MOST_RESULTS).toReversed().map((one) => html`<tr><td>${one.seed}</td><td>${short(one.ret)}</td><td>${one.length}</td><td>${one.modes.join(", ")}</td></tr>`)}</tbody></table>`}
  </aside>`;
}

// All terms that were ever told, in their order: an env may leave one out in some steps.
function useTerms(terms) {
  const known = useRef([]);
  for (const name of Object.keys(terms)) if (!known.current.includes(name)) known.current.push(name);
  return known.current.slice(0, MOST_TERMS);
}

function Row({ name, value, strong = false, small = false }) {
  return html`<div class=${small ? "small" : ""}><dt>${name}</dt><dd class=${strong ? "strong" : ""} title=${String(value)}>${value}</dd></div>`;
}

function Bars({ labels, shares }) {
  const likeliest = shares.map((share, action) => [share, action]).sort((a, b) => b[0] - a[0]).slice(0, MOST_BARS);
  const inOrder = likeliest.toSorted((a, b) => a[1] - b[1]);
  return html`<h2>The policy's next action</h2>
    <ul class="shares">${inOrder.map(([share, action]) => html`<li key=${action}><i style=${{ width: `${100 * share}%` }}></i><span>${labels[action] ?? `action ${action}`}</span><b>${Math.round(100 * share)}%</b></li>`)}</ul>`;
}

// What an env without pictures shows: its observation, number by number, with a bar from the middle.
export function Numbers({ reason, observation }) {
  const largest = Math.max(1e-9, ...observation.map(([, value]) => Math.abs(value)));
  return html`<div class="numbers-only">
    <p title=${reason}>This env draws no pictures. What it tells:</p>
    ${observation.length === 0 && html`<p>An image or a long list of numbers, which is not shown.</p>`}
    <dl>${observation.map(([name, value]) => html`<div key=${name}><dt>${name.replace(/^obs\.?/, "") || "observation"}</dt>
      <i><b style=${{ width: `${(50 * Math.abs(value)) / largest}%`, left: value < 0 ? `${50 - (50 * Math.abs(value)) / largest}%` : "50%" }}></b></i><dd>${short(value)}</dd></div>`)}</dl>
  </div>`;
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return WHOLE.format(value);
  return FOUR_DIGITS.format(value);
}

export function signed(value) {
  if (value === null || value === undefined) return "–";
  return value > 0 ? `+${short(value)}` : short(value);
}
