// A small chart over the steps of an episode with a cursor; click and drag move the episode there.
import { html, useEffect, useRef } from "/web/lib/preact.js";
import { number } from "/web/lib/format.js";
import { token, useTheme } from "/web/lib/theme.js";

const HEIGHT = 74;

export function StepChart({ name, title, series, step, onStep }) {
  const canvas = useRef(null);
  const cursor = useRef(null);
  const theme = useTheme();
  const length = Math.max(...series.map(({ y }) => y.length));

  useEffect(() => {
    const draw = () => paint(canvas.current, series, length);
    draw();
    const sized = new ResizeObserver(draw);
    sized.observe(canvas.current);
    return () => sized.disconnect();
  }, [series, length, theme]);
  useEffect(() => {
    cursor.current.style.left = `${(100 * Math.min(step, length - 1)) / Math.max(1, length - 1)}%`;
  }, [step, length]);

  const to = (event) => {
    if (event.type === "pointermove" && event.buttons !== 1) return;
    const box = canvas.current.getBoundingClientRect();
    const share = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    onStep(Math.round(share * (length - 1)));
  };
  return html`<figure class="stepchart" title=${title}>
    <figcaption><b>${name}</b>${series.map((one) => html`<span><i style=${{ background: one.colour }}></i>${one.label} <output>${number(one.y[Math.min(step, one.y.length - 1)], 4)}</output></span>`)}</figcaption>
    <div class="plane" onPointerDown=${to} onPointerMove=${to}><canvas ref=${canvas}></canvas><i class="cursor" ref=${cursor}></i></div>
  </figure>`;
}

// Lines that run through what they do not know; heights from the lowest to the highest value.
export function paint(canvas, series, length) {
  if (!canvas) return;
  const ratio = devicePixelRatio;
  const width = canvas.clientWidth;
  canvas.width = width * ratio;
  canvas.height = HEIGHT * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  let low = Infinity;
  let high = -Infinity;
  for (const { y } of series) {
    for (const value of y) {
      if (value === null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  // What never changes lies in the middle, not at the edge.
  if (high === low) [low, high] = [low - 1, high + 1];
  const range = high - low;
  const place = (value) => HEIGHT - 5 - ((value - low) / range) * (HEIGHT - 10);
  if (low < 0 && high > 0) {
    context.strokeStyle = token("line");
    context.beginPath();
    context.moveTo(0, place(0));
    context.lineTo(width, place(0));
    context.stroke();
  }
  for (const { y, colour, dashed } of series) {
    context.strokeStyle = colour;
    context.lineWidth = 1.4;
    context.setLineDash(dashed ? [4, 3] : []);
    context.beginPath();
    y.forEach((value, index) => {
      if (value !== null) context.lineTo((index * width) / Math.max(1, length - 1), place(value));
    });
    context.stroke();
    if (y.length === 1) context.fillRect(0, place(y[0]) - 2, 4, 4);
  }
}
