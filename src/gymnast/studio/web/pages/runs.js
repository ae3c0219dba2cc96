// All runs, live: find, choose, open, compare.
import { html, useEffect, useMemo, useRef, useState } from "/web/lib/preact.js";
import { get } from "/web/lib/server.js";
import { listen, want } from "/web/lib/live.js";
import { go, setQuery, useQuery } from "/web/lib/route.js";
import { useShortcuts } from "/web/lib/shortcuts.js";
import { ago, count, duration, moment, plural, score, whole } from "/web/lib/format.js";
import { Alerts, Bar, Command, Empty, State, Tag, Waiting } from "/web/components/small.js";
import { Rows } from "/web/components/rows.js";
import { Sparkline } from "/web/components/sparkline.js";

const ROW = 44;
const LOOK_AFTER = 60;
const MOST_GLIMPSES = 60;
const STATES = ["running", "solved", "finished", "interrupted", "failed", "crashed"];
const COLUMNS = [
  ["id", "run"], ["config", "config"], ["status", "status"], ["best", "return"], ["curve", "course"], ["steps", "vec steps"],
  ["time", "time"], ["created", "started"],
];
const ORDERS = {
  id: (run) => run.id,
  config: (run) => `${run.config} ${String(run.seed).padStart(9, "0")}`,
  status: (run) => run.status,
  best: (run) => -(run.best_return ?? -Infinity),
  steps: (run) => -run.vec_steps,
  time: (run) => -run.wall_seconds,
  created: (run) => -Date.parse(run.created),
};

let known = null; // runs by id: the page is there at once when somebody comes back

export function useRuns() {
  const [runs, set] = useState(known);
  useEffect(() => {
    const stop = listen("runs", (news) => {
      known = news.complete ? new Map() : new Map(known);
      for (const run of news.changed) known.set(run.id, run);
      for (const id of news.gone) known.delete(id);
      set(known);
    });
    want("runs", true);
    return () => {
      stop();
      want("runs", null);
    };
  }, []);
  return runs;
}

export function RunsPage() {
  const runs = useRuns();
  const [text, setText] = useQuery("q");
  const [state, setState] = useQuery("status");
  const [order, setOrder] = useQuery("sort", "created");
  const [chosen, choose] = useState(new Set());
  const [current, setCurrent] = useState(null); // by id: rows move when a run begins
  const search = useRef(null);
  const shown = useMemo(() => sorted(filtered(runs, text, state), order), [runs, text, state, order]);
  const [glimpses, look] = useGlimpses(shown);
  const at = shown.findIndex((run) => run.id === current);
  const move = (index) => setCurrent(shown[Math.max(0, Math.min(shown.length - 1, index))]?.id ?? null);

  const toggle = (id) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    choose(next);
  };
  const compare = () => {
    const ids = chosen.size ? [...chosen] : shown.slice(0, 8).map((run) => run.id);
    go(`/compare?${ids.map((id) => `run=${id}`).join("&")}`);
  };
  useShortcuts({
    "/": ["search", () => search.current?.focus()],
    j: ["next run", () => move(at + 1)],
    k: ["previous run", () => move(at - 1)],
    x: ["choose for comparison", () => shown[at] && toggle(shown[at].id)],
    Enter: ["open", () => shown[at] && go(`/runs/${shown[at].id}`)],
    c: ["compare", compare],
  });

  return html`
    <header class="page">
      <h1>Runs</h1>
      <input ref=${search} type="search" placeholder="Search id, config, tag, note…  /" value=${text} aria-label="Search"
        onInput=${(event) => setText(event.target.value)} />
      <div class="chips">${STATES.filter((name) => state === name || (runs && number(runs, name))).map((name) => html`<button aria-pressed=${state === name} onClick=${() => setState(state === name ? "" : name)}>${name}${runs && html`<em>${number(runs, name)}</em>`}</button>`)}</div>
      <span class="space"></span>
      ${runs?.size > 1 && html`<button onClick=${compare} title="Compare (c)">Compare ${chosen.size ? plural(chosen.size, "run") : "the newest"}</button>`}
      <a class="button primary" href="/new">New run</a>
    </header>
    ${runs === null && html`<${Waiting} lines=${8} />`}
    ${runs?.size === 0 && html`<${Nothing} />`}
    ${runs?.size > 0 && shown.length === 0 && html`<${Empty} title="No run matches"><p><button onClick=${() => setQuery({ q: null, status: null })}>Show all ${runs.size}</button></p></${Empty}>`}
    ${shown.length > 0 && html`
      <div class="table runs">
        <div class="head">
          <span></span>
          ${COLUMNS.map(([key, name]) => ORDERS[key]
            ? html`<button class=${key} aria-pressed=${order === key} onClick=${() => setOrder(key)} title=${`Sort by ${name}`}>${name}</button>`
            : html`<span class=${key}>${name}</span>`)}
        </div>
        <${Rows} size=${shown.length} height=${ROW} at=${at} onView=${look}
          row=${(index) => html`<${Row} key=${shown[index].id} run=${shown[index]} glimpse=${glimpses[shown[index].id]} chosen=${chosen.has(shown[index].id)} current=${index === at} onChoose=${toggle} />`} />
      </div>`}
  `;
}

function Row({ run, glimpse, chosen, current, onChoose }) {
  const reached = run.threshold !== null && run.best_return !== null && run.best_return >= run.threshold;
  return html`<a class="row" href=${`/runs/${run.id}`} aria-current=${current ? "true" : null} title=${run.note || null}>
    <span class="pick"><input type="checkbox" checked=${chosen} aria-label=${`Choose ${run.id}`} onClick=${(event) => { event.preventDefault(); event.stopPropagation(); onChoose(run.id); }} /></span>
    <span class="id mono">${run.id}</span>
    <span class="config"><b>${envOf(run)}</b><em>${variantOf(run)}seed ${run.seed}${run.tags.map((tag) => html` <${Tag}>${tag}</${Tag}>`)}</em></span>
    <span class="status"><${State} run=${run} />${run.status === "running" && html`<span class="left"><${Bar} share=${run.share} /><em>${run.eta_seconds ? duration(run.eta_seconds) : ""}</em></span>`}</span>
    <span class="best"><b class=${reached ? "good" : ""}>${score(run.best_return)}</b>${run.threshold !== null && html`<em>of ${score(run.threshold)}</em>`}</span>
    <span class="curve"><${Sparkline} values=${glimpse?.curve} /><${Alerts} counts=${glimpse?.alerts} /></span>
    <span class="steps" title=${`${whole(run.env_steps)} env steps`}>${count(run.vec_steps)}<em>${count(run.env_steps)} env</em></span>
    <span class="time">${duration(run.wall_seconds)}</span>
    <span class="created" title=${moment(run.created)}>${ago(run.created)}</span>
  </a>`;
}

// A config is an env and a variant of its settings: CartPole-v1:ppo.
function envOf(run) {
  return run.config ? run.config.split(":").at(-2) ?? run.config : run.env;
}

function variantOf(run) {
  const [, variant] = run.config?.split(/:(?=[^:]*$)/) ?? [];
  return variant ? `${variant}, ` : "";
}

function Nothing() {
  return html`<${Empty} title="No runs yet">
    <p>Train an agent here, or in a terminal. It shows up by itself.</p>
    <p><a class="button primary" href="/new?config=CartPole-v1:ppo">Train CartPole</a></p>
    <${Command} text="gymnast train CartPole-v1:ppo" />
  </${Empty}>`;
}

function filtered(runs, text, state) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return [...(runs?.values() ?? [])].filter((run) => {
    if (state && stateOf(run) !== state) return false;
    const haystack = `${run.id} ${run.config} ${run.env} ${run.algo} ${run.tags.join(" ")} ${run.note} seed=${run.seed}`.toLowerCase();
    return words.every((word) => haystack.includes(word));
  });
}

function stateOf(run) {
  return run.solved && run.status === "finished" ? "solved" : run.status;
}

function number(runs, state) {
  let size = 0;
  for (const run of runs.values()) size += stateOf(run) === state;
  return size || "";
}

function sorted(runs, order) {
  const key = ORDERS[order] ?? ORDERS.created;
  return runs
    .map((run) => [key(run), run])
    .sort(([first], [second]) => (first < second ? -1 : first > second ? 1 : 0))
    .map(([, run]) => run);
}

// Courses and alerts of the rows in view; those of running ones are asked for again. One request at a time, and only once a
// scroll rests: nobody sees the rows that fly by.
function useGlimpses(shown) {
  const [glimpses, set] = useState({});
  const view = useRef([0, 0]);
  const rows = useRef(shown);
  const asked = useRef(new Map());
  const timer = useRef(null);
  const isAsking = useRef(false);
  rows.current = shown;

  const ask = async () => {
    if (isAsking.current) return;
    const seen = rows.current.slice(view.current[0], view.current[1]);
    const missing = seen.filter((run) => asked.current.get(run.id) !== run.updated).slice(0, MOST_GLIMPSES);
    if (missing.length === 0) return;
    isAsking.current = true;
    for (const run of missing) asked.current.set(run.id, run.updated);
    const found = await get("/api/glimpses", { run: missing.map((run) => run.id) }).catch(() => ({}));
    isAsking.current = false;
    set((before) => ({ ...before, ...found }));
    soon(); // the view may be another one by now
  };
  const soon = () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(ask, LOOK_AFTER);
  };
  useEffect(soon, [shown]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const look = (first, last) => {
    view.current = [first, last];
    soon();
  };
  return [glimpses, look];
}
