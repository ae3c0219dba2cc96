// A line chart: series with their own x values, bands, a shared cursor, linear or logarithmic.
// Drag zooms, Shift and drag (or a sideways wheel) pans, Ctrl and the wheel zooms at the pointer, a double click shows all.
import uPlot from "/web/vendor/uplot.js";
import { html, useLayoutEffect, useRef } from "/web/lib/preact.js";
import { count, number } from "/web/lib/format.js";
import { token, useTheme } from "/web/lib/theme.js";
import { onZoom, zoomed, zoomTo } from "/web/lib/zoom.js";
import { hand } from "/web/components/chart-hand.js";

const shared = uPlot.sync("cursor");
// Charts share the place of the pointer. What is zoomed goes by lib/zoom.js: their axes may differ.
const SHARED_EVENTS = new Set(["mousemove", "mouseleave", "mouseenter"]);
const ofPointer = (type) => SHARED_EVENTS.has(type);

// `series`: [{label, colour, x, y, low?, high?, dashed?, points?}]. `line`: a height with a name, such as a threshold.
export function Chart({ series, height = 190, log = false, logX = false, line = null, xName = "vec_steps", precision = 4, onReady }) {
  const box = useRef(null);
  const plot = useRef(null);
  const shown = useRef(null);
  const shape = JSON.stringify([series.map(({ label, colour, low, dashed, points }) => [label, colour, Boolean(low), dashed, points]), log, logX, xName, line]);
  const theme = useTheme();

  useLayoutEffect(() => {
    const made = new uPlot(options({ series, height, log, logX, line, xName, precision, width: box.current.clientWidth }), joined(series), box.current);
    plot.current = made;
    shown.current = series;
    onReady?.(made);
    show(made, zoomed());
    const stop = onZoom((range) => show(made, range));
    const sized = new ResizeObserver(() => made.setSize({ width: Math.max(60, box.current.clientWidth), height }));
    sized.observe(box.current);
    return () => {
      sized.disconnect();
      stop();
      made.destroy();
      plot.current = null;
    };
  }, [shape, theme, height]);

  useLayoutEffect(() => {
    if (!plot.current || shown.current === series) return;
    shown.current = series;
    // New points must not undo a zoom.
    plot.current.batch(() => {
      plot.current.setData(joined(series), false);
      show(plot.current, zoomed());
    });
  }, [series]);

  return html`<div class="chart" ref=${box}></div>`;
}

function show(plot, range) {
  const xs = plot.data[0];
  if (xs.length === 0) return;
  const [min, max] = range ?? [xs[0], xs.at(-1)];
  if (min < max) plot.setScale("x", { min, max });
  else plot.setScale("x", { min: min / 2, max: 1.5 * max || 1 }); // a single point goes into the middle
}

// uPlot wants one x for all; points that a series lacks are null there, and lines go on across them.
function joined(series) {
  const tables = series.flatMap(({ x, y, low, high }) => {
    const own = [[x, y]];
    if (low) own.push([x, low], [x, high]);
    return own;
  });
  if (tables.length === 0) return [[]];
  return uPlot.join(tables);
}

function options({ series, height, width, log, logX, line, xName, precision }) {
  const axis = { stroke: token("dim"), font: `11px ${token("font")}`, grid: { stroke: token("line"), width: 1 }, ticks: { show: false } };
  const lines = [];
  const bands = [];
  for (const one of series) {
    lines.push(curve(one, precision));
    if (one.low) {
      lines.push(edge(one), edge(one));
      bands.push({ series: [lines.length, lines.length - 1], fill: transparent(one.colour) });
    }
  }
  return {
    width: Math.max(60, width),
    height,
    legend: { show: false },
    padding: [8, 10, 0, 0],
    cursor: {
      sync: { key: shared.key, setSeries: false, scales: ["x", null], filters: { pub: ofPointer, sub: ofPointer } },
      drag: { x: true, y: false, setScale: false },
      points: { size: 6 },
    },
    scales: { x: { time: false, distr: logX ? 3 : 1 }, y: { distr: log ? 3 : 1, range: log ? undefined : roomy } },
    axes: [
      { ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : xName === "time" ? seconds(tick) : count(tick))) },
      { ...axis, size: 52, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : number(tick, 3))) },
    ],
    series: [{}, ...lines],
    bands,
    hooks: { draw: line === null ? [] : [(plot) => horizontal(plot, line)] },
    plugins: [tooltip(series, xName, precision), hand()],
  };
}

function curve({ label, colour, dashed, points }, precision) {
  return {
    label,
    stroke: colour,
    width: points ? 0 : 1.6,
    dash: dashed ? [5, 4] : undefined,
    spanGaps: true,
    points: points ? { show: true, size: 6, fill: colour } : { show: singlePoint },
    value: (_, value) => number(value, precision),
  };
}

function singlePoint(plot, index) {
  const known = plot.data[index].filter((value) => value !== null && value !== undefined);
  return known.length === 1;
}

function edge({ label }) {
  return { label, stroke: "transparent", width: 0, points: { show: false }, spanGaps: true, edge: true };
}

function transparent(colour) {
  return `${colour}2e`;
}

function roomy(plot, low, high) {
  if (low === null) return [0, 1];
  const space = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low - space, high + space];
}

function seconds(tick) {
  return tick < 600 ? `${number(tick)}s` : `${number(tick / 60)}m`;
}

function horizontal(plot, { value, name }) {
  const y = Math.round(plot.valToPos(value, "y", true));
  if (y < plot.bbox.top || y > plot.bbox.top + plot.bbox.height) return;
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = token("good");
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(plot.bbox.left, y);
  ctx.lineTo(plot.bbox.left + plot.bbox.width, y);
  ctx.stroke();
  ctx.font = `${10 * devicePixelRatio}px ${token("font")}`;
  ctx.textAlign = "right";
  ctx.fillText(name, plot.bbox.left + plot.bbox.width - 4, y - 4 * devicePixelRatio);
  ctx.restore();
}

// What all series have at the cursor, sorted by height.
function tooltip(series, xName, precision) {
  let card;
  return {
    hooks: {
      init: (plot) => {
        card = document.createElement("div");
        card.className = "tooltip";
        card.hidden = true;
        plot.over.append(card);
      },
      setCursor: (plot) => {
        const { left, idx } = plot.cursor;
        if (idx === null || idx === undefined || left < 0) {
          card.hidden = true;
          return;
        }
        const x = plot.data[0][idx];
        const rows = plot.series
          .map((one, index) => ({ one, value: index === 0 || one.edge ? null : nearest(plot.data[index], idx) }))
          .filter(({ value }) => value !== null)
          .sort((first, second) => second.value - first.value)
          .slice(0, 10);
        card.replaceChildren(text("b", `${xName === "time" ? seconds(x) : Math.round(x).toLocaleString("en-US")} ${xName === "time" ? "" : xName.replace("_", " ")}`));
        for (const { one, value } of rows) card.append(entry(one, number(value, precision)));
        card.hidden = rows.length === 0;
        const right = left > plot.over.clientWidth / 2;
        card.style.left = right ? "" : `${left + 12}px`;
        card.style.right = right ? `${plot.over.clientWidth - left + 12}px` : "";
      },
    },
  };
}

function nearest(values, index) {
  for (let step = 0; step < values.length; step += 1) {
    for (const place of [index - step, index + step]) {
      if (values[place] !== null && values[place] !== undefined) return values[place];
    }
    if (step > 400) return null;
  }
  return null;
}

function entry(one, value) {
  const row = text("div", "");
  const mark = text("i", "");
  mark.style.background = typeof one.stroke === "function" ? one.stroke() : one.stroke;
  row.append(mark, text("span", one.label), text("em", value));
  return row;
}

function text(tag, content) {
  const made = document.createElement(tag);
  made.textContent = content;
  return made;
}
