// One episode or two side by side: pictures, charts, probabilities, table, all at the same step.
import { html, useEffect, useMemo, useRef, useState } from "/web/lib/preact.js";
import { useShortcuts } from "/web/lib/shortcuts.js";
import { number, score } from "/web/lib/format.js";
import { csv, save } from "/web/lib/save.js";
import { curveColour, useTheme } from "/web/lib/theme.js";
import { Choice, Toggle } from "/web/components/small.js";
import { Film } from "/web/components/film.js";
import { StepChart } from "/web/components/step-chart.js";
import { StepTable } from "/web/components/step-table.js";
import { MapPanel } from "/web/components/grid-map.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4, 8];
const HEATS = [["cam_action", "Grad-CAM, action"], ["cam_value", "Grad-CAM, value"], ["saliency_action", "saliency, action"], ["saliency_value", "saliency, value"]];

export function Episode({ traces, onBranch, onSee }) {
  const [first, second] = traces;
  const last = Math.max(...traces.map((trace) => trace.length));
  const [step, setStep] = useState(0);
  const [playing, play] = useState(false);
  const [speed, setSpeed] = useState(1);
  const parted = useMemo(() => (second ? firstDifference(first, second) : null), [first, second]);
  const at = Math.min(step, last);

  useEffect(() => setStep((known) => Math.min(known, last)), [last]);
  useClock(playing, first.fps * speed, () => setStep((known) => {
    if (known >= last) play(false);
    return Math.min(known + 1, last);
  }));
  const move = (by) => {
    play(false);
    setStep((known) => Math.max(0, Math.min(last, known + by)));
  };
  const jump = (find) => () => {
    const target = find(first, at);
    if (target !== null) play(false), setStep(target);
  };
  const faster = (by) => setSpeed((known) => SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(known) + by))]);
  const jumps = [
    ["w", "next reward", "reward ›", jump(nextReward)],
    ["d", "largest TD error", "max |TD|", first.td_errors && jump((trace) => extreme(trace.td_errors, Math.abs))],
    ["v", "lowest value", "min value", first.values && jump((trace) => extreme(trace.values, (value) => -value))],
    ["e", "end of the episode", "end", () => move(last)],
    ["p", "where the two part", parted === null ? "" : `part at ${parted.toLocaleString("en-US")}`, parted !== null && (() => (play(false), setStep(parted)))],
  ].filter(([, , , go]) => go);
  const toggle = () => (at >= last ? (setStep(0), play(true)) : play(!playing));
  useShortcuts({
    " ": ["play or pause", toggle],
    ArrowRight: ["next step", () => move(1)],
    ArrowLeft: ["previous step", () => move(-1)],
    ".": ["ten steps on", () => move(10)],
    ",": ["ten steps back", () => move(-10)],
    "+": ["faster", () => faster(1)],
    "-": ["slower", () => faster(-1)],
    Home: ["beginning", () => move(-last)],
    ...Object.fromEntries(jumps.map(([key, words, , go]) => [key, [words, go]])),
  });

  return html`<div class=${`episode ${second ? "two" : "one"}`}>
    <div class=${`films ${second ? "two" : ""}`}>${traces.map((trace, index) => html`<${Pictures} key=${index} trace=${trace} step=${Math.min(at, trace.length)} onSee=${onSee} />`)}</div>
    <${Transport} ...${{ at, last, playing, speed, jumps }} onStep=${(value) => (play(false), setStep(value))} onPlay=${toggle} onSpeed=${setSpeed} />
    <div class="numbers">
      <div class="now">${traces.map((trace, index) => html`<${Now} key=${index} trace=${trace} step=${Math.min(at, trace.length)} onBranch=${index === 0 ? onBranch : null} />`)}</div>
      <${Charts} traces=${traces} step=${at} onStep=${(value) => (play(false), setStep(value))} />
    </div>
    <${StepTable} trace=${first} step=${Math.min(at, first.length - 1)} onStep=${(value) => (play(false), setStep(value))} />
    <div class="controls"><button onClick=${() => save(`${first.run}_seed${first.seed}.csv`, csv(first.columns), "text/csv")}>CSV</button>
      <a class="button" href=${`${first.base}episode.parquet`} download=${`${first.run}_seed${first.seed}.parquet`}>Parquet</a></div>
  </div>`;
}

function Pictures({ trace, step, onSee }) {
  const [heat, setHeat] = useState("");
  const [layer, setLayer] = useState("");
  const pictures = Object.fromEntries((trace.films ?? []).map((film) => [film.name, film]));
  return html`<section class="pictures">
    <header><b>return ${score(trace.return)}</b> <em>${trace.length.toLocaleString("en-US")} steps, ${trace.ending}</em>
      <span class="space"></span><em>${trace.checkpoint}, seed ${trace.seed}, ${trace.deterministic ? "greedy" : `sampled${trace.temperature === 1 ? "" : `, T ${trace.temperature}`}`}</em></header>
    ${pictures.frames ? html`<${Film} film=${pictures.frames} base=${trace.base} step=${step} className="game" />` : html`<div class="film none">${trace.no_picture ?? "This env draws no pictures."}</div>`}
    ${trace.reads_images && html`<div class="seen">
      <h3>What the network sees</h3>
      ${pictures.input ? html`<div class="stacked" title="Heat lies over the newest picture" style=${{ "--stack": trace.stack ?? 1 }}><${Film} film=${pictures.input} base=${trace.base} step=${step} />${heat && pictures[heat] && html`<${Film} film=${pictures[heat]} base=${trace.base} step=${step} className="heat" />`}</div>
        <p class="stack">${stackLabels(trace, step).map((label) => html`<span>${label}</span>`)}</p>
        <${Choice} label="Heat" value=${heat} options=${[["", "plain"], ...HEATS.filter(([name]) => pictures[name])]} onChange=${setHeat} />
        ${trace.layers?.length > 0 && html`<${Choice} label="Layer" value=${layer} options=${[["", "no layer"], ...trace.layers.map((name) => [name, name.replace("layer", "layer ")]), ["filters", "filters"]]} onChange=${setLayer} />`}
        ${layer === "filters" && html`<img class="filters" src=${`${trace.base}filters.png`} alt="First layer's filters" />`}
        ${layer && pictures[layer] && html`<${Film} film=${pictures[layer]} base=${trace.base} step=${step} />`}`
        : html`<button onClick=${onSee}>Look into the network</button>`}
    </div>`}
    ${trace.map && html`<${MapPanel} map=${trace.map} state=${trace.states?.[step]} labels=${trace.labels} config=${trace.config} />`}
  </section>`;
}

// Each picture of a stack with the action that led to it.
function stackLabels(trace, step) {
  const size = trace.stack ?? 1;
  return Array.from({ length: size }, (_, place) => {
    const before = step - (size - place);
    return before < 0 ? "start" : trace.columns.action_label?.[before] ?? String(trace.columns.action?.[before] ?? "");
  });
}

function Transport({ at, last, playing, speed, jumps, onStep, onPlay, onSpeed }) {
  return html`<div class="transport">
    <button class="primary" title="Play or pause (space)" onClick=${onPlay}>${playing ? "❚❚" : "▶"}</button>
    <button title="Previous step (←)" onClick=${() => onStep(Math.max(0, at - 1))}>‹</button>
    <button title="Next step (→)" onClick=${() => onStep(Math.min(last, at + 1))}>›</button>
    <input type="range" aria-label="Step" min="0" max=${last} value=${at} onInput=${(event) => onStep(Number(event.target.value))} />
    <output>step ${at.toLocaleString("en-US")} of ${last.toLocaleString("en-US")}</output>
    <select aria-label="Speed" value=${speed} onChange=${(event) => onSpeed(Number(event.target.value))}>${SPEEDS.map((one) => html`<option value=${one}>${one}×</option>`)}</select>
    <span class="jumps">${jumps.map(([key, words, label, go]) => html`<button key=${key} title=${`${words[0].toUpperCase()}${words.slice(1)} (${key})`} onClick=${go}>${label}</button>`)}</span>
  </div>`;
}

function Charts({ traces, step, onStep }) {
  const theme = useTheme();
  const charts = useMemo(() => chartsOf(traces), [traces, theme]);
  return html`<div class="stepcharts">${charts.map(({ name, title, series }) => html`<${StepChart} key=${name} name=${name} title=${title} series=${series} step=${step} onStep=${onStep} />`)}</div>`;
}

function chartsOf(traces) {
  const of = (pick, label = (index) => (traces.length > 1 ? ["first", "second"][index] : "")) =>
    traces.map((trace, index) => ({ label: label(index), colour: curveColour(index), y: pick(trace) })).filter(({ y }) => y && y.length > 0);
  const [first] = traces;
  const terms = Object.entries(first.terms ?? {});
  const components = Object.entries(first.columns).filter(([name]) => name === "obs" || name.startsWith("obs."));
  const found = [
    { name: "value and return", title: "What the critic predicts, and the discounted return that followed, in the learner's reward scale", series: [...of((trace) => trace.values, (index) => (traces.length > 1 ? `value ${index + 1}` : "value")), ...traces.map((trace, index) => ({ label: traces.length > 1 ? `return ${index + 1}` : "return", colour: curveColour(index + 2), dashed: true, y: trace.returns })).filter(({ y }) => y)] },
    { name: first.advantage_name, title: "As training computes it, before it is normalised", series: of((trace) => trace.advantages) },
    { name: "TD error", title: "r + γ V(next) − V(here)", series: of((trace) => trace.td_errors) },
    { name: "reward", title: "The env's own, of each step", series: of((trace) => trace.rewards) },
  ];
  if (terms.length > 1) found.push({ name: "reward terms", series: terms.map(([label, y], index) => ({ label: label.replace(/^reward_?/, ""), colour: curveColour(index), y })) });
  if (components.length > 0) found.push({ name: "observation", series: components.slice(0, 8).map(([label, y], index) => ({ label: label.replace(/^obs\.?/, "") || "obs", colour: curveColour(index), y })) });
  return found.filter(({ series }) => series.length > 0);
}

// The step in words and numbers, with what each action was worth to the policy. After the end it keeps its rows, so that nothing jumps.
function Now({ trace, step, onBranch }) {
  const over = step >= trace.length;
  const at = (values) => (over ? null : values?.[step]);
  const chosen = at(trace.columns.action);
  const executed = at(trace.columns.executed);
  const tellsExecuted = useMemo(() => isOther(trace), [trace]);
  return html`<section class="card now-card">
    <header><b>${over ? trace.ending : `step ${step.toLocaleString("en-US")}`}</b><span class="space"></span><em>action</em> <b>${at(trace.columns.action_label) ?? chosen ?? "–"}</b></header>
    ${trace.probabilities && html`<${Chances} trace=${trace} shares=${at(trace.probabilities)} mask=${at(trace.masks)} chosen=${chosen} onBranch=${onBranch && ((action) => onBranch(step, action))} />`}
    <dl class="facts">
      ${trace.values && fact("value", trace.values[step])}
      ${fact("reward", at(trace.rewards))}
      ${trace.returns && fact("return", at(trace.returns))}
      ${trace.advantages && fact(trace.advantage_name, at(trace.advantages))}
      ${trace.td_errors && fact("TD error", at(trace.td_errors))}
      ${Object.keys(trace.terms ?? {}).map((name) => fact(name, at(trace.terms[name])))}
      ${tellsExecuted && html`<dt>executed</dt><dd>${executed ?? "–"}</dd>`}
      <dt>done</dt><dd>${over ? "–" : trace.columns.terminated[step] ? "terminated" : trace.columns.truncated[step] ? "truncated" : "no"}</dd>
    </dl>
  </section>`;
}

// Whether an env was ever given something else than what was chosen.
function isOther(trace) {
  const { executed, action } = trace.columns;
  return Boolean(action && executed) && executed.some((one, step) => String(one) !== String(action[step]));
}

function Chances({ trace, shares, mask, chosen, onBranch }) {
  return html`<ul class="chances">${trace.probabilities[0].map((_, action) => {
    const share = shares?.[action] ?? null;
    const isForbidden = Boolean(mask) && !mask[action];
    return html`<li key=${action} class=${`${action === chosen ? "chosen" : ""} ${isForbidden ? "masked" : ""}`}>
      <span>${trace.labels?.[action] ?? action}</span><i style=${{ width: `${100 * (share ?? 0)}%` }}></i><em>${share === null ? "–" : `${(100 * share).toFixed(1)}%`}</em>
      ${onBranch && share !== null && action !== chosen && !isForbidden && html`<button class="quiet" title="Force this action here, and see what would have happened" onClick=${() => onBranch(action)}>what if</button>`}</li>`;
  })}</ul>`;
}

function fact(name, value) {
  return html`<dt>${name}</dt><dd>${number(value, 5)}</dd>`;
}

// The next step whose reward is not the usual one, nor 0; where all that is not 0 is usual, the next that is not 0.
function nextReward(trace, at) {
  const usual = mostFrequent(trace.rewards);
  const isSpecial = (reward) => reward !== 0 && reward !== usual;
  const counts = trace.rewards.some(isSpecial) ? isSpecial : (reward) => reward !== 0;
  for (let step = at + 1; step < trace.length; step += 1) if (counts(trace.rewards[step])) return step;
  return null;
}

function mostFrequent(values) {
  const sizes = new Map();
  let best = values[0];
  for (const value of values) {
    sizes.set(value, (sizes.get(value) ?? 0) + 1);
    if (sizes.get(value) > sizes.get(best)) best = value;
  }
  return best;
}

function extreme(values, size) {
  if (!values || values.length === 0) return null;
  let best = 0;
  for (let step = 1; step < values.length; step += 1) if (size(values[step]) > size(values[best])) best = step;
  return best;
}

// The first step in which two episodes act differently.
function firstDifference(first, second) {
  const [a, b] = [first, second].map((trace) => trace.columns.action_label ?? trace.columns.action ?? []);
  for (let step = 0; step < Math.min(a.length, b.length); step += 1) if (a[step] !== b[step]) return step;
  return a.length === b.length ? null : Math.min(a.length, b.length);
}

// Calls `tick` so many times a second while it runs, in step with the screen.
function useClock(running, rate, tick) {
  const latest = useRef(tick);
  latest.current = tick;
  useEffect(() => {
    if (!running) return () => {};
    let due = performance.now();
    let frame = requestAnimationFrame(function loop(now) {
      // After a pause of the page, steps that were missed are not made up for.
      if (now - due > 500) due = now;
      while (now >= due) {
        latest.current();
        due += 1000 / rate;
      }
      frame = requestAnimationFrame(loop);
    });
    return () => cancelAnimationFrame(frame);
  }, [running, rate]);
}
