// A new run: choose a config, change what is to be changed, start. Every change is checked while it is typed.
import { html, useEffect, useMemo, useState } from "/web/lib/preact.js";
import { post } from "/web/lib/server.js";
import { useLoaded } from "/web/lib/load.js";
import { go, useQuery } from "/web/lib/route.js";
import { Action, Command, Problem, Tag, Toggle, Waiting } from "/web/components/small.js";

const CHECK_AFTER = 180;
const USUAL = [
  "train.env_steps", "train.seed", "algo.learning_rate", "algo.gamma", "algo.n_steps", "algo.batch_size", "algo.n_epochs",
  "algo.ent_coef", "algo.clip_range", "env.n_envs", "policy.hidden", "policy.activation", "train.stop_when_solved", "eval.every", "eval.episodes",
];

export function NewRunPage() {
  const [config, setConfig] = useQuery("config");
  return html`
    <header class="page"><h1>New run</h1>${config && html`<span class="mono dim">${config}</span><button onClick=${() => setConfig("")}>Other config</button>`}</header>
    ${config ? html`<${Form} key=${config} config=${config} />` : html`<${Choose} onChoose=${setConfig} />`}
  `;
}

function Choose({ onChoose }) {
  const found = useLoaded("/api/configs");
  const [text, setText] = useState("");
  const envs = useMemo(() => (found.data ? byEnv(found.data) : []), [found.data]);
  if (found.error) return html`<${Problem} text=${found.error} onRetry=${found.reload} />`;
  if (found.waiting) return html`<${Waiting} lines=${8} />`;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = envs.filter((env) => words.every((word) => `${env.id} ${env.family} ${env.description} ${env.variants.join(" ")}`.toLowerCase().includes(word)));
  return html`
    <div class="controls"><input class="big" type="search" autofocus placeholder="CartPole, Atari, ppo…" aria-label="Search configs" value=${text} onInput=${(event) => setText(event.target.value)} /></div>
    <div class="envs">${shown.map((env) => html`<article class=${`card env ${env.installed ? "" : "missing"}`} key=${env.id}>
      <header><b>${env.id}</b><span class="space"></span><em>${env.family}</em></header>
      <p>${env.description}</p>
      <div class="variants">${env.variants.map((name) => html`<button disabled=${!env.installed || env.id.includes("*")} onClick=${() => onChoose(`${env.id}:${name}`)}>${name}</button>`)}</div>
      ${!env.installed && html`<${Command} text=${env.install} />`}
    </article>`)}</div>
    ${shown.length === 0 && text && html`<p>No preset matches. Any Gymnasium id can be trained: <button onClick=${() => onChoose(text.trim())}>${text.trim()}</button></p>`}
  `;
}

function byEnv({ envs }) {
  return envs.filter((env) => env.variants.length > 0);
}

// Settings that the address already changes: `set=algo.gamma=0.9`.
function initialChanges() {
  const given = new URLSearchParams(location.search).getAll("set").filter((text) => text.includes("="));
  return Object.fromEntries(given.map((text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)]));
}

function Form({ config }) {
  const keys = useLoaded("/api/config-keys");
  const [card, setCard] = useState({ data: null, error: null });
  const [changes, change] = useState(initialChanges);
  const [problems, setProblems] = useState({});
  const [text, setText] = useState("");
  const [all, showAll] = useState(false);
  const overrides = Object.entries(changes).map(([key, value]) => `${key}=${value}`);

  useEffect(() => {
    let stale = false;
    const timer = setTimeout(async () => {
      try {
        const data = await post("/api/config", { reference: config, overrides });
        if (!stale) setCard({ data, error: null }), setProblems({});
      } catch (error) {
        if (stale) return;
        const key = Object.keys(changes).find((one) => error.message.includes(one));
        if (key) setProblems({ [key]: error.message });
        else setCard((before) => ({ ...before, error: error.message }));
      }
    }, overrides.length ? CHECK_AFTER : 0);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [overrides.join(" ")]);

  const about = useMemo(() => aboutKeys(keys.data ?? [], card.data?.config?.algo?.id), [keys.data, card.data]);
  const start = async () => {
    const { run } = await post("/api/train", { reference: config, overrides });
    go(`/runs/${run}`);
  };
  if (card.error && !card.data) {
    return html`<${Problem} text=${card.error} /><p>The studio shows settings of envs with a preset; this one can be started as it is.</p><${Action} kind="primary" onClick=${start}>Start training</${Action}>`;
  }
  if (!card.data) return html`<${Waiting} lines=${10} />`;
  const set = (key, value, original) => {
    const next = { ...changes, [key]: value };
    if (value === original || value === "") delete next[key];
    change(next);
  };
  const wanted = text.toLowerCase();
  const shown = card.data.settings.filter((one) => {
    if (one.key in changes) return true;
    if (wanted) return `${one.key} ${about[one.key]?.about ?? ""}`.toLowerCase().includes(wanted);
    return all || USUAL.includes(one.key);
  });
  const command = ["gymnast train", config, ...overrides.map(quoted)].join(" ");
  return html`
    ${card.data.notices.map((notice) => html`<p class="warning">${notice}</p>`)}
    <div class="controls">
      <input type="search" placeholder="find a setting" aria-label="Find a setting" value=${text} onInput=${(event) => setText(event.target.value)} />
      <${Toggle} on=${all} onChange=${showAll}>all settings</${Toggle}>
      <span class="space"></span>
      ${overrides.length > 0 && html`<button onClick=${() => change({})}>Undo all</button>`}
      <${Action} kind="primary" disabled=${Object.keys(problems).length > 0} onClick=${start}>Start training</${Action}>
    </div>
    <${Command} text=${command} />
    <div class="settings">${shown.map((one) => html`<${Field} key=${one.key} setting=${one} about=${about[one.key]} changed=${changes[one.key]} problem=${problems[one.key]} onChange=${set} />`)}</div>
  `;
}

function Field({ setting, about, changed, problem, onChange }) {
  const original = written(setting.value);
  const shown = changed ?? original;
  const choices = about?.choices ?? [];
  const closed = choices.length > 0 && about.kinds.every((kind) => kind === "string" || kind === "boolean" || kind === "null") && !about.kinds.includes("array");
  const input = closed
    ? html`<select value=${shown} onChange=${(event) => onChange(setting.key, event.target.value, original)}>${choices.map((choice) => html`<option value=${written(choice)}>${written(choice)}</option>`)}</select>`
    : html`<input value=${shown} spellcheck="false" inputmode=${about?.kinds.every((kind) => kind === "integer") ? "numeric" : null} onInput=${(event) => onChange(setting.key, event.target.value, original)} />`;
  return html`<label class=${`field ${changed !== undefined ? "changed" : ""} ${problem ? "wrong" : ""}`}>
    <span class="mono">${setting.key}${changed !== undefined && html`<${Tag}>changed</${Tag}>`}</span>
    ${input}
    <em>${problem ?? about?.about ?? ""}${!problem && html` <span class="dim">${setting.origin}</span>`}</em>
  </label>`;
}

function aboutKeys(keys, algorithm) {
  return Object.fromEntries(keys.filter((key) => key.algorithm === null || key.algorithm === algorithm).map((key) => [key.key, key]));
}

function written(value) {
  if (value === null) return "null";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function quoted(text) {
  return /^[\w./:=+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
