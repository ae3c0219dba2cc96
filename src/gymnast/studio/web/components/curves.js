// The curves of runs, grouped by the catalogue; new points come by themselves.
import { html, useEffect, useMemo, useRef, useState } from "/web/lib/preact.js";
import { address, get } from "/web/lib/server.js";
import { listen, want } from "/web/lib/live.js";
import { useLoaded } from "/web/lib/load.js";
import { useQuery } from "/web/lib/route.js";
import { csv, save } from "/web/lib/save.js";
import { onZoom, zoomed, zoomTo } from "/web/lib/zoom.js";
import { smoothed } from "/web/lib/smooth.js";
import { curveColour, useTheme } from "/web/lib/theme.js";
import { number } from "/web/lib/format.js";
import { Chart } from "/web/components/chart.js";
import { chartAsSvg } from "/web/components/chart-svg.js";
import { Choice, Empty, Problem, Toggle, Waiting } from "/web/components/small.js";

export const AXES = [["vec_steps", "vec steps"], ["env_steps", "env steps"], ["time", "time"]];
const GROUPS = { rollout: "Training episodes", eval: "Evaluation", train: "Learning", time: "Speed", env: "Environment", sys: "Machine", alerts: "Alerts", "": "Steps" };
const FIRST = ["rollout/return_mean", "eval/return_mean", "train/explained_variance", "train/entropy", "train/approx_kl", "train/value_loss"];
const NOT_SHOWN = new Set(["env_steps", "vec_steps", "frames", "updates", "iteration", "epoch", "progress"]);
const MOST_LIVE = 24;
const DETAIL_AFTER = 120;

// `version` changes when the run has news: metrics may appear late.
export function Curves({ ids, threshold = null, colours = null, version = null }) {
  const names = useLoaded(`/api/runs/${ids[0]}/metrics`);
  const [axis, setAxis] = useQuery("x", "vec_steps");
  const [smooth, setSmooth] = useQuery("smooth", "0");
  const [log, setLog] = useQuery("log");
  const [text, setText] = useQuery("m");
  const [all, setAll] = useQuery("all");

  useEffect(() => names.reload(), [version]);
  const groups = useMemo(() => (names.data ? grouped(names.data, text, all) : []), [names.data, text, all]);
  const metrics = useMemo(() => groups.flatMap(([, cards]) => cards.map((card) => card.name)), [groups]);
  const curves = useCurves(ids, metrics, axis);

  if (names.error) return html`<${Problem} text=${names.error} onRetry=${names.reload} />`;
  if (names.waiting) return html`<${Waiting} lines=${6} />`;
  return html`
    <${Controls} ...${{ axis, setAxis, smooth, setSmooth, log, setLog, text, setText, all, setAll }} />
    ${names.data.length === 0 && html`<${Empty} title="Nothing logged yet"><p>The first rows come with the first iteration.</p></${Empty}>`}
    ${names.data.length > 0 && metrics.length === 0 && html`<${Empty} title="No metric matches"><p>The search text is a regular expression.</p></${Empty}>`}
    ${groups.map(([group, cards]) => html`
      <section class="group" key=${group}>
        <h2>${group === "first" ? "At a glance" : GROUPS[group] ?? group}</h2>
        <div class="charts">${cards.map((card) => html`<${CurveCard} key=${card.name} card=${card} curves=${curves} ids=${ids} axis=${axis} smooth=${Number(smooth)} log=${log === "1"} colours=${colours}
          threshold=${card.name.endsWith("/return_mean") ? threshold : null} />`)}</div>
      </section>`)}
  `;
}

export function Controls({ axis, setAxis, smooth, setSmooth, log, setLog, text, setText, all, setAll, children }) {
  return html`<div class="controls">
    <${Choice} label="x axis" value=${axis} options=${AXES} onChange=${setAxis} />
    <label class="inline" title="Exponential smoothing">smooth <input type="range" min="0" max="0.99" step="0.01" value=${smooth} onInput=${(event) => setSmooth(event.target.value)} /></label>
    <${Toggle} on=${log === "1"} onChange=${(on) => setLog(on ? "1" : "")} title="Logarithmic heights">log</${Toggle}>
    ${setText && html`<input type="search" placeholder="metrics, e.g. loss|kl" value=${text} aria-label="Metrics" onInput=${(event) => setText(event.target.value)} />`}
    ${setAll && html`<${Toggle} on=${all === "1"} onChange=${(on) => setAll(on ? "1" : "")} title="Every metric that was logged">all metrics</${Toggle}>`}
    ${children}
  </div>`;
}

function grouped(cards, text, all) {
  const shown = cards.filter((card) => !NOT_SHOWN.has(card.name));
  const pattern = expression(text);
  if (pattern) return byGroup(shown.filter((card) => pattern.test(card.name) || pattern.test(card.sb3 ?? "")));
  const first = FIRST.map((name) => shown.find((card) => card.name === name)).filter(Boolean);
  const chosen = first.length ? first : shown.slice(0, 6);
  if (all !== "1") return [["first", chosen]];
  return [["first", chosen], ...byGroup(shown.filter((card) => !chosen.includes(card)))];
}

function byGroup(cards) {
  const groups = new Map();
  for (const card of cards) groups.set(card.group, [...(groups.get(card.group) ?? []), card]);
  return [...groups];
}

function expression(text) {
  if (!text) return null;
  try {
    return new RegExp(text, "i");
  } catch {
    return null;
  }
}

// Curves by `run metric`, kept up to date; where somebody zooms into a thinned one, with all points of that stretch.
export function useCurves(ids, metrics, axis) {
  const [curves, set] = useState(new Map());
  const [detail, setDetail] = useState(null);
  const asked = JSON.stringify([ids, metrics, axis]);
  useEffect(() => {
    let stale = false;
    set(new Map());
    setDetail(null);
    if (metrics.length === 0) return () => {};
    const live = metrics.slice(0, MOST_LIVE);
    const stop = listen("curves", (news) => set((before) => merged(before, news)));
    want("curves", { runs: ids, metrics: live, axis });
    const rest = metrics.slice(MOST_LIVE);
    if (rest.length > 0) {
      get("/api/curves", { run: ids, metric: rest, axis }).then((found) => {
        if (!stale) set((before) => merged(before, found.map((one) => ({ ...one, complete: true }))));
      });
    }
    return () => {
      stale = true;
      stop();
      want("curves", null);
    };
  }, [asked]);
  useEffect(() => zoomTo(null), [axis]);
  useDetail(curves, setDetail);
  return useMemo(() => (detail ? detailed(curves, detail) : curves), [curves, detail]);
}

// Asks for the points of the stretch that is shown, once the hand rests.
function useDetail(curves, setDetail) {
  const isThinned = useMemo(() => [...curves.values()].some((one) => one.thinned), [curves]);
  useEffect(() => {
    if (!isThinned) return () => {};
    let timer = null;
    const ask = (range) => {
      clearTimeout(timer);
      if (range === null) {
        want("window", null);
        setDetail(null);
        return;
      }
      const spare = range[1] - range[0]; // so that a pan finds points there already
      timer = setTimeout(() => want("window", [range[0] - spare, range[1] + spare]), DETAIL_AFTER);
    };
    const stopListening = listen("window", setDetail);
    const stopZoom = onZoom(ask);
    if (zoomed()) ask(zoomed());
    return () => {
      clearTimeout(timer);
      stopListening();
      stopZoom();
      want("window", null);
    };
  }, [isThinned]);
  useEffect(() => () => zoomTo(null), []);
}

function merged(before, news) {
  const curves = new Map(before);
  for (const { run, name, x, y, complete, after, points } of news) {
    const key = `${run} ${name}`;
    const known = curves.get(key);
    const thinned = points > x.length;
    if (complete || !known) {
      curves.set(key, { x, y, thinned });
      continue;
    }
    // What is new replaces what lies beyond its beginning: a resume goes back.
    let kept = known.x.length;
    while (kept > 0 && after !== null && known.x[kept - 1] > after) kept -= 1;
    curves.set(key, { x: [...known.x.slice(0, kept), ...x], y: [...known.y.slice(0, kept), ...y], thinned: thinned || known.thinned });
  }
  return curves;
}

// The curves with a stretch of them replaced by its own points.
function detailed(curves, { low, high, series }) {
  const found = new Map(curves);
  for (const { run, name, x, y } of series) {
    const key = `${run} ${name}`;
    const known = found.get(key);
    if (!known?.thinned || x.length === 0) continue;
    const from = Math.min(low, x[0]);
    const to = Math.max(high, x.at(-1));
    const before = known.x.filter((place) => place < from).length;
    const after = known.x.findLastIndex((place) => place <= to) + 1;
    const around = (values, inside) => [...values.slice(0, before), ...inside, ...values.slice(after)];
    found.set(key, { ...known, x: around(known.x, x), y: around(known.y, y) });
  }
  return found;
}

function CurveCard({ card, curves, ids, axis, smooth, log, colours, threshold }) {
  const theme = useTheme();
  const plot = useRef(null);
  const series = useMemo(
    () => ids.map((id, index) => ({ id, colour: colours?.[id] ?? curveColour(index), ...(curves.get(`${id} ${card.name}`) ?? { x: [], y: [] }) }))
      .filter((one) => one.x.length > 0)
      .map((one) => ({ ...one, label: ids.length > 1 ? one.id : card.label, y: smoothed(one.y, smooth) })),
    [curves, ids, card.name, smooth, colours, theme],
  );
  const last = series.length === 1 ? series[0].y.at(-1) : null;
  const line = threshold === null || series.length === 0 ? null : { value: threshold, name: "solved" };
  return html`<figure class="card">
    <figcaption title=${about(card)}>
      <b>${card.name}</b>${card.sb3 && card.sb3 !== card.label && html`<em>${card.sb3}</em>`}
      <span class="space"></span>
      ${last !== null && html`<output>${number(last)}</output>`}
      <${Save} name=${card.name} series=${series} axis=${axis} plot=${plot} log=${log} />
    </figcaption>
    ${series.length > 0
      ? html`<${Chart} series=${series} log=${log && positive(series)} line=${line} xName=${axis} onReady=${(made) => (plot.current = made)} />`
      : html`<div class="chart none">no value yet</div>`}
    <p>${card.meaning && `${card.meaning[0].toUpperCase()}${card.meaning.slice(1)}.`}${card.healthy && html` <span class="dim">Healthy: ${card.healthy}.</span>`}</p>
  </figure>`;
}

function about(card) {
  const bounds = card.bounds ? `\nbounds: ${card.bounds.map((one) => one ?? "∞").join(" … ")}` : "";
  return `${card.meaning ?? card.name}${card.unit ? ` (${card.unit})` : ""}${bounds}`;
}

function positive(series) {
  return series.every((one) => one.y.every((value) => value > 0));
}

export function Save({ name, series, axis, plot, log }) {
  const [open, show] = useState(false);
  const file = name.replaceAll("/", "_");
  const png = () => plot.current.ctx.canvas.toBlob((blob) => save(`${file}.png`, blob));
  const svg = () => save(`${file}.svg`, chartAsSvg({ title: name, series, axis, log }), "image/svg+xml");
  const table = () => save(`${file}.csv`, csv(longTable(series, axis)), "text/csv");
  if (!open) return html`<button class="quiet" title="Save this chart" onClick=${() => show(true)}>⤓</button>`;
  return html`<span class="menu" onMouseLeave=${() => show(false)}>
    ${[["PNG", png], ["SVG", svg], ["CSV", table]].map(([label, act]) => html`<button class="quiet" onClick=${() => { act(); show(false); }}>${label}</button>`)}
  </span>`;
}

function longTable(series, axis) {
  const columns = { run: [], [axis]: [], value: [] };
  for (const { label, x, y } of series) {
    columns.run.push(...x.map(() => label));
    columns[axis].push(...x);
    columns.value.push(...y);
  }
  return columns;
}

export function curvesAddress(ids, metric, axis) {
  return address("/api/curves", { run: ids, metric, axis });
}
