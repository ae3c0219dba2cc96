// Several runs next to each other: curves, settings that differ, and which settings went with which score.
import { html, useEffect, useMemo, useRef, useState } from "/web/lib/preact.js";
import { get } from "/web/lib/server.js";
import { useLoaded } from "/web/lib/load.js";
import { setQuery, useQuery, useRoute } from "/web/lib/route.js";
import { zoomTo } from "/web/lib/zoom.js";
import { smoothed } from "/web/lib/smooth.js";
import { curveColour, useTheme } from "/web/lib/theme.js";
import { count, duration, score, words } from "/web/lib/format.js";
import { Choice, Empty, Problem, State, Toggle, Waiting } from "/web/components/small.js";
import { Chart } from "/web/components/chart.js";
import { Controls, Save, useCurves } from "/web/components/curves.js";
import { Parallel, Scatter } from "/web/components/relations.js";
import { useRuns } from "/web/pages/runs.js";

const FIRST = "^(rollout|eval)/return_mean$";

export function ComparePage() {
  const { query } = useRoute();
  const ids = query.getAll("run").flatMap((text) => text.split(","));
  const runs = useRuns();
  const together = useLoaded(ids.length > 0 ? "/api/compare" : null, { run: ids });
  const [bands, setBands] = useQuery("bands");
  return html`
    <header class="page"><h1>Compare</h1><${AddRun} runs=${runs} ids=${ids} /><span class="space"></span>
      ${together.data?.groups.length < ids.length && html`<${Toggle} on=${bands === "1"} onChange=${(on) => setBands(on ? "1" : "")} title="One curve per setting, with the 95 % interval over its seeds">group seeds</${Toggle}>`}
    </header>
    ${ids.length === 0 && html`<${Empty} title="Nothing to compare yet"><p>Add runs above, or choose some <a href="/runs">in the list</a> with x and press c.</p></${Empty}>`}
    ${together.error && html`<${Problem} text=${together.error} onRetry=${together.reload} />`}
    ${together.waiting && ids.length > 0 && html`<${Waiting} lines=${6} />`}
    ${together.data && html`<${Together} ids=${ids} runs=${runs} data=${together.data} bands=${bands === "1"} />`}
  `;
}

function Together({ ids, runs, data, bands }) {
  const theme = useTheme();
  const colours = useMemo(() => Object.fromEntries(ids.map((id, index) => [id, curveColour(index)])), [ids.join(), theme]);
  const rows = ids.map((id) => runs?.get(id)).filter(Boolean);
  const warning = data.side_by_side?.warning;
  return html`
    ${warning && html`<p class="warning">${warning}</p>`}
    <${Legend} rows=${rows} colours=${colours} groups=${data.groups} bands=${bands} />
    ${bands ? html`<${BandCharts} ids=${ids} groups=${data.groups} />` : html`<${CurveCharts} ids=${ids} colours=${colours} />`}
    ${data.side_by_side && html`<${Differences} ids=${data.side_by_side.comparison.runs} colours=${colours} comparison=${data.side_by_side.comparison} />`}
    <${Relations} rows=${rows} groups=${data.groups} colours=${colours} />
  `;
}

function AddRun({ runs, ids }) {
  const add = (event) => {
    const id = event.target.value.split(" ")[0];
    if (!runs?.has(id) || ids.includes(id)) return;
    setQuery({ run: [...ids, id] });
    event.target.value = "";
  };
  return html`<input list="every-run" placeholder="Add a run…" aria-label="Add a run" onChange=${add} />
    <datalist id="every-run">${[...(runs?.values() ?? [])].filter((run) => !ids.includes(run.id)).slice(0, 300).map((run) => html`<option value=${`${run.id} ${run.config} seed ${run.seed}`} />`)}</datalist>`;
}

function Legend({ rows, colours, groups, bands }) {
  const remove = (id) => setQuery({ run: rows.map((run) => run.id).filter((one) => one !== id) });
  if (bands) {
    return html`<ul class="legend">${groups.map((group, index) => html`<li key=${group.label}><i style=${{ background: curveColour(index) }}></i><b>${group.label}</b>
      <span>${group.runs.length} ${group.runs.length === 1 ? "seed" : "seeds"}</span>
      ${group.best && html`<span title="Interquartile mean of the best evaluations, and its 95 % interval">best ${score(group.best.iqm)} <em>[${score(group.best.low)}, ${score(group.best.high)}]</em></span>`}</li>`)}</ul>`;
  }
  return html`<ul class="legend">${rows.map((run) => html`<li key=${run.id}><i style=${{ background: colours[run.id] }}></i><a href=${`/runs/${run.id}`} class="mono">${run.id}</a>
    <b>${run.config}</b><span>seed ${run.seed}</span><${State} run=${run} /><span>best ${score(run.best_return)}</span><span class="dim">${count(run.vec_steps)} vec steps, ${duration(run.wall_seconds)}</span>
    <button class="quiet" title="Leave out" onClick=${() => remove(run.id)}>×</button></li>`)}</ul>`;
}

function useView() {
  const [axis, setAxis] = useQuery("x", "vec_steps");
  const [smooth, setSmooth] = useQuery("smooth", "0");
  const [log, setLog] = useQuery("log");
  const [logX, setLogX] = useQuery("logx");
  const [text, setText] = useQuery("m");
  return { axis, setAxis, smooth, setSmooth, log, setLog, logX, setLogX, text, setText };
}

function useNames(ids, text) {
  const names = useLoaded("/api/metric-names", { run: ids });
  return useMemo(() => {
    if (!names.data) return [];
    try {
      const pattern = new RegExp(text || FIRST, "i");
      return names.data.filter((name) => pattern.test(name));
    } catch {
      return [];
    }
  }, [names.data, text]);
}

function CurveCharts({ ids, colours }) {
  const view = useView();
  const metrics = useNames(ids, view.text);
  const curves = useCurves(ids, metrics, view.axis);
  return html`<${ViewControls} view=${view} />
    <div class="charts wide">${metrics.map((name) => {
      const series = ids.map((id) => ({ label: id, colour: colours[id], ...(curves.get(`${id} ${name}`) ?? { x: [], y: [] }) })).filter((one) => one.x.length > 0);
      return html`<${WideChart} key=${name} name=${name} series=${series.map((one) => ({ ...one, y: smoothed(one.y, Number(view.smooth)) }))} view=${view} />`;
    })}</div>`;
}

function BandCharts({ ids, groups }) {
  const view = useView();
  const metrics = useNames(ids, view.text);
  const [found, set] = useState({});
  const theme = useTheme();
  const asked = JSON.stringify([ids, metrics, view.axis]);
  useEffect(() => {
    let stale = false;
    set({});
    for (const metric of metrics) {
      get("/api/bands", { run: ids, metric, axis: view.axis }).then((curves) => stale || set((before) => ({ ...before, [metric]: curves })));
    }
    return () => {
      stale = true;
    };
  }, [asked]);
  useEffect(() => () => zoomTo(null), []);
  const index = (label) => groups.findIndex((group) => group.label === label);
  return html`<${ViewControls} view=${view} />
    <div class="charts wide">${metrics.map((name) => {
      const series = (found[name] ?? []).map((curve) => ({ label: curve.group, colour: curveColour(index(curve.group)), x: curve.x, y: smoothed(curve.iqm, Number(view.smooth)), low: curve.low, high: curve.high }));
      return html`<${WideChart} key=${`${name}${theme}`} name=${name} series=${series} view=${view} />`;
    })}</div>`;
}

function ViewControls({ view }) {
  return html`<${Controls} ...${view}><${Toggle} on=${view.logX === "1"} onChange=${(on) => view.setLogX(on ? "1" : "")} title="Logarithmic x axis">log x</${Toggle}></${Controls}>`;
}

function WideChart({ name, series, view }) {
  const plot = useRef(null);
  const log = view.log === "1" && series.every((one) => one.y.every((value) => value === null || value > 0));
  const logX = view.logX === "1" && series.every((one) => one.x.every((value) => value > 0));
  return html`<figure class="card"><figcaption><b>${name}</b><span class="space"></span><${Save} name=${name} series=${series} axis=${view.axis} plot=${plot} log=${log} /></figcaption>
    ${series.length > 0 ? html`<${Chart} series=${series} height=${300} log=${log} logX=${logX} xName=${view.axis} onReady=${(made) => (plot.current = made)} />` : html`<div class="chart none tall">no value yet</div>`}</figure>`;
}

// Settings in which the runs differ; the values that stand out are marked.
function Differences({ ids, comparison, colours }) {
  const differences = Object.entries(comparison.settings);
  if (differences.length === 0) return html`<section class="group"><h2>Settings that differ</h2><p class="dim">Only the seed.</p></section>`;
  return html`<section class="group"><h2>Settings that differ</h2>
    <div class="scroll"><table class="plain differences"><thead><tr><th>key</th>${ids.map((id) => html`<th class="mono"><i class="mark" style=${{ background: colours[id] }}></i>${id}</th>`)}</tr></thead>
    <tbody>${differences.map(([key, values]) => {
      const texts = values.map(words);
      const usual = mostFrequent(texts);
      return html`<tr><td class="mono">${key}</td>${texts.map((text) => html`<td class=${`mono ${text === usual ? "dim" : "other"}`}>${text}</td>`)}</tr>`;
    })}</tbody></table></div></section>`;
}

function mostFrequent(texts) {
  const sizes = new Map();
  for (const text of texts) sizes.set(text, (sizes.get(text) ?? 0) + 1);
  return [...sizes].sort((first, second) => second[1] - first[1])[0]?.[0];
}

function Relations({ rows, groups, colours }) {
  const [kind, setKind] = useQuery("relate", "scatter");
  const settings = useMemo(() => settingsByRun(groups), [groups]);
  const keys = [...new Set(Object.values(settings).flatMap((values) => Object.keys(values)))];
  if (keys.length === 0 || rows.length < 2) return null;
  return html`<section class="group"><h2>Settings and score</h2>
    <${Choice} label="Kind of chart" value=${kind} options=${[["scatter", "scatter"], ["parallel", "parallel coordinates"]]} onChange=${setKind} />
    ${kind === "scatter" ? html`<${Scatter} rows=${rows} settings=${settings} keys=${keys} colours=${colours} />` : html`<${Parallel} rows=${rows} settings=${settings} keys=${keys} colours=${colours} />`}
  </section>`;
}

function settingsByRun(groups) {
  return Object.fromEntries(groups.flatMap((group) => group.runs.map((id) => [id, group.settings])));
}
