// Where the time of a run goes, as one bar.
import { html, useEffect } from "/web/lib/preact.js";
import { useLoaded } from "/web/lib/load.js";

const NAMES = {
  env: "stepping envs", policy: "choosing actions", learn: "learning", eval: "evaluating", checkpoint: "checkpoints", video: "videos", other: "the rest",
};
const PLACES = Object.keys(NAMES);
const LEAST = 0.005; // a part that rounds to nothing is not named

// `version` changes when the run has news.
export function TimeSplit({ id, version }) {
  const found = useLoaded(`/api/runs/${id}/time`);
  useEffect(() => found.reload(), [version]);
  const parts = Object.entries(found.data ?? {}).filter(([, share]) => share >= LEAST);
  const colour = (name) => `var(--curve-${PLACES.indexOf(name) + 1})`;
  return html`<section class="timesplit" aria-label="Where the time goes">
    <div>${parts.map(([name, share]) => html`<i key=${name} title=${`${NAMES[name]}: ${percent(share)}`} style=${{ flexGrow: share, background: colour(name) }}></i>`)}</div>
    <p>${parts.map(([name, share]) => html`<span key=${name}><i style=${{ background: colour(name) }}></i>${NAMES[name]} <b>${percent(share)}</b></span>`)}</p>
  </section>`;
}

function percent(share) {
  return `${Math.round(100 * share)}%`;
}
