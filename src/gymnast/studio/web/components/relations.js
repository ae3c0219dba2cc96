// Which settings went with which score: a scatter for one setting, parallel coordinates for all.
import { html } from "/web/lib/preact.js";
import { useQuery } from "/web/lib/route.js";
import { number, score, words } from "/web/lib/format.js";

const WIDTH = 860;
const HEIGHT = 300;
const EDGE = 56;

export function Scatter({ rows, settings, keys, colours }) {
  const [key, setKey] = useQuery("key", keys[0]);
  const there = rows.filter((run) => run.best_return !== null);
  const across = scale(there.map((run) => settings[run.id]?.[key]), EDGE, WIDTH - 20);
  const up = scale(there.map((run) => run.best_return), HEIGHT - 34, 14);
  return html`
    <label class="inline">setting <select value=${key} onChange=${(event) => setKey(event.target.value)}>${keys.map((one) => html`<option value=${one}>${one}</option>`)}</select></label>
    <svg class="relations" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`${key} and best return`}>
      ${up.ticks.map(([value, y]) => html`<line x1=${EDGE} x2=${WIDTH} y1=${y} y2=${y} /><text x=${EDGE - 8} y=${y + 4} text-anchor="end">${label(value)}</text>`)}
      ${across.ticks.map(([value, x]) => html`<text x=${x} y=${HEIGHT - 10} text-anchor="middle">${label(value)}</text>`)}
      ${there.map((run) => html`<a href=${`/runs/${run.id}`}><circle cx=${across.place(settings[run.id]?.[key])} cy=${up.place(run.best_return)} r="6" style=${{ fill: colours[run.id] }}><title>${`${run.id}: ${label(settings[run.id]?.[key])}, best ${score(run.best_return)}`}</title></circle></a>`)}
    </svg>`;
}

export function Parallel({ rows, settings, keys, colours }) {
  const there = rows.filter((run) => run.best_return !== null);
  const names = [...keys, "best return"];
  const valueOf = (run, name) => (name === "best return" ? run.best_return : settings[run.id]?.[name]);
  const axes = names.map((name) => scale(there.map((run) => valueOf(run, name)), HEIGHT - 20, 44));
  const across = (index) => EDGE + (index * (WIDTH - 2 * EDGE)) / Math.max(1, names.length - 1);
  return html`<svg class="relations" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label="Settings of every run, and its score">
    ${names.map((name, index) => html`<g>
      <line x1=${across(index)} x2=${across(index)} y1="44" y2=${HEIGHT - 20} class="axis" />
      <text x=${across(index)} y=${index % 2 ? 32 : 16} text-anchor="middle" class="name">${name.split(".").at(-1)}<title>${name}</title></text>
      ${axes[index].ticks.map(([value, y]) => html`<text x=${across(index) + 6} y=${y + 4}>${label(value)}</text>`)}
    </g>`)}
    ${there.map((run) => html`<polyline class="way" style=${{ stroke: colours[run.id] }} points=${names.map((name, index) => `${across(index)},${axes[index].place(valueOf(run, name))}`).join(" ")}><title>${`${run.id}: best ${score(run.best_return)}`}</title></polyline>`)}
  </svg>`;
}

// Numbers by size (logarithmic where they span decades), anything else one place each.
function scale(values, from, to) {
  const numbers = values.every((value) => typeof value === "number" && Number.isFinite(value));
  if (!numbers) {
    const kinds = [...new Set(values.map(label))];
    const place = (value) => from + ((kinds.indexOf(label(value)) + 0.5) / kinds.length) * (to - from);
    return { place, ticks: kinds.map((kind, index) => [kind, from + ((index + 0.5) / kinds.length) * (to - from)]) };
  }
  const low = Math.min(...values);
  const high = Math.max(...values);
  const decades = low > 0 && high / low > 30;
  const size = decades ? Math.log10 : (value) => value;
  const share = (value) => (high === low ? 0.5 : (size(value) - size(low)) / (size(high) - size(low)));
  const inner = (to - from) * 0.06;
  const place = (value) => from + inner + share(value) * (to - from - 2 * inner);
  const steps = high === low ? [low] : [0, 0.25, 0.5, 0.75, 1].map((part) => (decades ? 10 ** (size(low) + part * (size(high) - size(low))) : low + part * (high - low)));
  return { place, ticks: steps.map((value) => [value, place(value)]) };
}

function label(value) {
  return typeof value === "number" ? number(value, 3) : words(value);
}
