// One run: how it stands, its curves, what is the matter with it, its settings and files.
import { html, useState } from "/web/lib/preact.js";
import { post } from "/web/lib/server.js";
import { useLoaded } from "/web/lib/load.js";
import { go, useQuery } from "/web/lib/route.js";
import { useShortcuts } from "/web/lib/shortcuts.js";
import { clock, count, day, duration, percent, score } from "/web/lib/format.js";
import { Action, Bar, Problem, State, Tag, Waiting } from "/web/components/small.js";
import { useRuns } from "/web/pages/runs.js";
import { Curves } from "/web/components/curves.js";
import { LiveMap } from "/web/components/grid-map.js";
import { Health } from "/web/components/health.js";
import { TimeSplit } from "/web/components/time-split.js";
import { Settings } from "/web/components/settings.js";
import { Checkpoints, Log, Report, Videos } from "/web/components/artefacts.js";

const TABS = [
  ["curves", "Curves"], ["map", "Map"], ["health", "Alerts"], ["settings", "Settings"], ["videos", "Videos"],
  ["checkpoints", "Checkpoints"], ["log", "Log"], ["report", "Report"],
];

const GRIDS = /^(FrozenLake|CliffWalking)/; // envs whose policy can be drawn on a map

export function RunPage({ id }) {
  const found = useLoaded(`/api/runs/${encodeURIComponent(id)}`);
  const runs = useRuns();
  const [tab, setTab] = useQuery("tab", "curves");
  const tabs = found.data && !GRIDS.test(found.data.env.id ?? "") ? TABS.filter(([key]) => key !== "map") : TABS;
  const keys = Object.fromEntries(tabs.map(([key, name], index) => [String(index + 1), [name.toLowerCase(), () => setTab(key)]]));
  useShortcuts({ ...keys, c: ["compare with others", () => go(`/compare?run=${id}`)] });

  if (found.error) return html`<${Problem} text=${found.error} onRetry=${found.reload} />`;
  if (found.waiting) return html`<${Waiting} lines=${6} />`;
  const { details, env } = found.data;
  const row = runs?.get(details.id) ?? rowOf(details);
  return html`
    <${Head} row=${row} details=${details} env=${env} reload=${found.reload} />
    <div class="tabs" role="tablist">
      ${tabs.map(([key, name]) => html`<button role="tab" aria-selected=${tab === key} onClick=${() => setTab(key)}>${name}</button>`)}
    </div>
    ${tab === "curves" && html`<${Curves} ids=${[details.id]} version=${row.updated} threshold=${details.threshold} />`}
    ${tab === "map" && html`<${LiveMap} id=${details.id} running=${row.status === "running"} />`}
    ${tab === "health" && html`<${Health} id=${details.id} />`}
    ${tab === "settings" && html`<${Settings} id=${details.id} />`}
    ${tab === "videos" && html`<${Videos} id=${details.id} videos=${details.videos} />`}
    ${tab === "checkpoints" && html`<${Checkpoints} id=${details.id} checkpoints=${details.checkpoints} />`}
    ${tab === "log" && html`<${Log} id=${details.id} running=${row.status === "running"} />`}
    ${tab === "report" && html`<${Report} id=${details.id} there=${found.data.report} />`}
  `;
}

// The row of the list, before the list is there.
function rowOf(details) {
  return { ...details.status, id: details.id, config: details.name, status: details.progress.state, share: details.progress.share, eta_seconds: details.progress.eta_seconds, tags: details.tags, threshold: details.threshold };
}

function Head({ row, details, env, reload }) {
  const running = row.status === "running";
  const base = `/api/runs/${details.id}`;
  return html`
    <header class="page run">
      <div class="title">
        <h1>${row.config || env.id}</h1>
        <span class="mono dim">${details.id}</span>
        <${State} run=${row} />
        ${running && html`<${Bar} share=${row.share} />`}
      </div>
      <span class="space"></span>
      <a class="button primary" href=${`/inspect/${details.id}`} title="Watch an episode step by step">Inspect</a>
      <a class="button" href=${`/play/${details.id}`} title="Watch the policy, take over, hand back">Play</a>
      <a class="button" href=${`/compare?run=${details.id}`} title="Compare with others (c)">Compare</a>
      ${running && html`<${Action} kind="danger" title="Write a checkpoint and stop; it can be resumed exactly" onClick=${async () => { await post(`${base}/stop`); reload(); }}>Stop</${Action}>`}
      ${!running && html`<${Resume} details=${details} row=${row} />`}
    </header>
    <dl class="figures">
      <${Figure} name="best evaluation" value=${score(row.best_return)} note=${row.best_at === null ? "" : `at ${count(row.best_at)} env steps`} good=${row.threshold !== null && row.best_return >= row.threshold} />
      <${Figure} name="last evaluation" value=${score(row.last_return)} note=${row.last_at === null ? "" : `at ${count(row.last_at)}`} />
      <${Figure} name="solved from" value=${score(row.threshold)} note=${env.random_score ? `random play ${score(env.random_score.score)}` : ""} />
      <${Figure} name="vec steps" value=${count(row.vec_steps)} note=${`${count(row.env_steps)} env steps`} />
      <${Figure} name=${running ? "time left" : "time"} value=${running ? duration(row.eta_seconds) : duration(row.wall_seconds)} note=${running ? `${percent(row.share)} of the budget` : details.status.stop_reason ?? ""} />
      <${Figure} name="started" value=${day(details.status.created)} note=${clock(details.status.created)} small />
    </dl>
    <${TimeSplit} id=${details.id} version=${row.updated} />
    <${Words} details=${details} />
  `;
}

function Figure({ name, value, note = "", good = false, small = false }) {
  return html`<div><dt>${name}</dt><dd class=${`${good ? "good" : ""} ${small ? "small" : ""}`}>${value}</dd><em>${note || " "}</em></div>`;
}

function Resume({ details, row }) {
  const finished = row.status === "finished";
  const [steps, set] = useState(2 * row.env_steps);
  const [open, show] = useState(false);
  const resume = async () => {
    const body = finished || open ? { env_steps: Number(steps) } : {};
    await post(`/api/runs/${details.id}/resume`, body);
    show(false);
  };
  if (!open && finished) return html`<button onClick=${() => show(true)} title="Continue training from the last checkpoint">Train on…</button>`;
  if (!open) {
    return html`<button onClick=${() => show(true)} title="With another budget">…</button><${Action} kind="primary" title="Continue exactly where it stopped" onClick=${resume}>Resume</${Action}>`;
  }
  return html`<label class="inline">up to <input type="number" min="1" value=${steps} onInput=${(event) => set(event.target.value)} /> env steps</label>
    <${Action} kind="primary" onClick=${resume}>Train on</${Action}><button onClick=${() => show(false)}>Cancel</button>`;
}

function Words({ details }) {
  const [tags, setTags] = useState(details.tags);
  const [note, setNote] = useState(details.note);
  const [problem, setProblem] = useState(null);
  const change = async (body) => {
    try {
      setTags((await post(`/api/runs/${details.id}/tags`, body)).tags);
      setProblem(null);
    } catch (error) {
      setProblem(error.message);
    }
  };
  const add = (event) => {
    if (event.key !== "Enter" || !event.target.value.trim()) return;
    change({ add: [event.target.value.trim()] });
    event.target.value = "";
  };
  const write = async (event) => {
    if (event.target.value === note) return;
    try {
      await post(`/api/runs/${details.id}/note`, { note: event.target.value });
      setNote(event.target.value);
      setProblem(null);
    } catch (error) {
      setProblem(error.message);
    }
  };
  return html`<div class="words">
    ${tags.map((tag) => html`<${Tag} key=${tag} onRemove=${() => change({ remove: [tag] })}>${tag}</${Tag}>`)}
    <input class="quiet" placeholder="add a tag" size="10" aria-label="Add a tag" onKeyDown=${add} />
    <input class="quiet note" placeholder="a note on this run" aria-label="Note" value=${note} onBlur=${write} onKeyDown=${(event) => event.key === "Enter" && event.target.blur()} />
    ${problem && html`<span class="inline-problem" role="alert">${problem}</span>`}
  </div>`;
}
