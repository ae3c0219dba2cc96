// The inspector: roll an episode out, scrub it frame by frame, look into the network, branch off, compare two episodes.
import { html, useEffect, useMemo, useRef, useState } from "/web/lib/preact.js";
import { get, post } from "/web/lib/server.js";
import { useLoaded } from "/web/lib/load.js";
import { setQuery, useQuery, useRoute, go } from "/web/lib/route.js";
import { Choice, Empty, Problem, Toggle, Waiting } from "/web/components/small.js";
import { Episode } from "/web/components/episode.js";
import { useRuns } from "/web/pages/runs.js";

const POLL = 250;
const PARTS = ["ckpt", "seed", "mode", "T", "max", "kw", "gamma", "lambda", "force", "see"];

export function InspectPage({ id }) {
  const found = useLoaded(id ? `/api/runs/${id}` : null);
  const { query } = useRoute();
  if (!id) return html`<${ChooseRun} />`;
  if (found.error) return html`<${Problem} text=${found.error} onRetry=${found.reload} />`;
  if (found.waiting) return html`<${Waiting} lines=${6} />`;
  const first = Object.fromEntries(PARTS.map((name) => [name, query.get(name) ?? ""]));
  const second = query.get("b") ? Object.fromEntries(new URLSearchParams(query.get("b"))) : null;
  return html`
    <header class="page"><h1>Inspector</h1><a class="mono" href=${`/runs/${id}`}>${id}</a><b>${found.data.details.name}</b>
      <span class="space"></span>
      ${second ? html`<button onClick=${() => setQuery({ b: null })}>One episode</button>`
        : html`<button title="Another episode next to this one" onClick=${() => setQuery({ b: asText({ ...first }) })}>Compare with…</button>`}
    </header>
    <${Request} details=${found.data.details} asked=${first} onAsk=${(asked) => setQuery(asked)} />
    ${second && html`<${Request} details=${found.data.details} asked=${second} onAsk=${(asked) => setQuery({ b: asText({ ...second, ...asked }) })} name="second" />`}
    <${Traces} id=${id} requests=${second ? [first, second] : [first]} />
  `;
}

function asText(asked) {
  return new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== "" && value !== null && value !== undefined)).toString();
}

function ChooseRun() {
  const runs = useRuns();
  return html`<header class="page"><h1>Inspector</h1></header>
    ${runs?.size === 0 && html`<${Empty} title="No runs yet"><p><a href="/new">Train one</a> first.</p></${Empty}>`}
    <p class="dim">Choose a run whose agent you want to watch.</p>
    <div class="picks">${[...(runs?.values() ?? [])].slice(0, 60).map((run) => html`<a class="button" href=${`/inspect/${run.id}`}><span class="mono">${run.id}</span> ${run.config} <em>seed ${run.seed}</em></a>`)}</div>`;
}

// What is asked for; it is rolled out as soon as it changes.
function Request({ details, asked, onAsk, name = "" }) {
  const [more, showMore] = useState(Boolean(asked.kw || asked.gamma || asked.lambda || asked.force || asked.max));
  const field = (key, label, title, size = 6) => html`<label class="inline" title=${title}>${label}
    <input size=${size} value=${asked[key] ?? ""} onChange=${(event) => onAsk({ [key]: event.target.value.trim() || null })} /></label>`;
  return html`<form class="controls request" aria-label=${name || "episode"} onSubmit=${(event) => event.preventDefault()}>
    <label class="inline">checkpoint <select value=${asked.ckpt ?? ""} onChange=${(event) => onAsk({ ckpt: event.target.value || null })}>
      <option value="">best</option><option value="last">last</option>
      ${details.checkpoints.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select></label>
    <label class="inline" title="Seed of the episode">seed <input size="5" value=${asked.seed || "0"} onChange=${(event) => onAsk({ seed: event.target.value.trim() || null })} /></label>
    <button type="button" title="Another seed" onClick=${() => onAsk({ seed: Number(asked.seed || 0) + 1 })}>+1</button>
    <${Choice} label="Actions" value=${asked.mode || "greedy"} options=${[["greedy", "greedy"], ["sampled", "sampled"]]} onChange=${(mode) => onAsk({ mode: mode === "greedy" ? null : mode })} />
    ${asked.mode === "sampled" && field("T", "temperature", "Below 1 the choice is sharper, above it is more random", 4)}
    <${Toggle} on=${more} onChange=${showMore}>more</${Toggle}>
    ${more && html`${field("max", "steps at most", "The episode is cut off after this many steps")}${field("kw", "env kwargs", "as JSON: {\"gravity\": -5}", 18)}
      ${field("gamma", "γ", "Discount of the returns shown", 5)}${field("lambda", "λ", "λ of the advantages shown", 5)}
      ${field("force", "force action", "STEP:ACTION to force, and see what would have happened", 8)}`}
  </form>`;
}

function Traces({ id, requests }) {
  const first = useTrace(id, requests[0]);
  const second = useTrace(id, requests[1] ?? null);
  const states = requests.length > 1 ? [first, second] : [first];
  const waiting = states.find((one) => one.state !== "done" && one.state !== "failed");
  const failed = states.find((one) => one.state === "failed");
  const branch = (step, action) => setQuery({ b: asText({ ...requests[0], force: `${step}:${action}` }) });
  const see = () => setQuery({ see: "1" });
  if (failed) return html`<${Problem} text=${failed.error} onRetry=${failed.again} />`;
  if (waiting) return html`<div class="rolling"><i class="spinner"></i> Rolling out${waiting.steps ? `: ${waiting.steps.toLocaleString("en-US")} steps` : "…"}</div>`;
  return html`<${Episode} traces=${states.map((one) => one.trace)} onBranch=${branch} onSee=${see} />`;
}

// An episode of the server, rolled out unless it is there already.
function useTrace(id, request) {
  const [state, set] = useState({ state: "asking" });
  const [turn, again] = useState(0);
  const asked = request && JSON.stringify(request);
  useEffect(() => {
    if (!request) return () => {};
    let stale = false;
    set({ state: "asking" });
    const run = async () => {
      try {
        let answer = await post(`/api/runs/${id}/traces`, bodyOf(request));
        while (answer.state === "running" && !stale) {
          set(answer);
          await new Promise((ready) => setTimeout(ready, POLL));
          answer = await get(`/api/runs/${id}/traces/${answer.key}`);
        }
        if (stale) return;
        if (answer.state !== "done") return set({ state: "failed", error: answer.error });
        const base = `/files/${id}/traces/${answer.key}/`;
        const trace = await get(`${base}trace.json`);
        if (!stale) set({ state: "done", trace: { ...trace, base } });
      } catch (error) {
        if (!stale) set({ state: "failed", error: error.message });
      }
    };
    run();
    return () => {
      stale = true;
    };
  }, [id, asked, turn]);
  return { ...state, again: () => again(turn + 1) };
}

function bodyOf(request) {
  const number = (text) => (text === "" || text === undefined ? null : Number(text));
  let kwargs = {};
  if (request.kw) {
    try {
      kwargs = JSON.parse(request.kw);
    } catch {
      throw new Error(`The env's kwargs are not JSON: ${request.kw}`);
    }
  }
  return {
    checkpoint: request.ckpt || "best",
    seed: number(request.seed) ?? 0,
    deterministic: request.mode !== "sampled",
    temperature: number(request.T) ?? 1,
    max_steps: number(request.max),
    env_kwargs: kwargs,
    gamma: number(request.gamma),
    gae_lambda: number(request.lambda),
    force: request.force || null,
    see: request.see === "1",
  };
}
