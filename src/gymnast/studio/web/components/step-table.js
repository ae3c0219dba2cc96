// Every step of an episode as a row; only the rows in view exist.
import { html, useEffect, useMemo, useRef, useState } from "/web/lib/preact.js";
import { number } from "/web/lib/format.js";

const ROW = 24;
const SPARE = 10;

export function StepTable({ trace, step, onStep }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const names = useMemo(() => Object.keys(trace.columns), [trace]);
  const texts = useMemo(() => [], [trace]); // of the rows that were seen: a step on changes none of them
  const size = trace.length;
  const shown = Math.ceil(320 / ROW) + 2 * SPARE;
  const first = Math.max(0, Math.floor(top / ROW) - SPARE);

  useEffect(() => {
    const { scrollTop, clientHeight } = box.current;
    const place = (step + 1) * ROW;
    if (place < scrollTop + 2 * ROW || place > scrollTop + clientHeight - 2 * ROW) box.current.scrollTop = place - clientHeight / 2;
  }, [step]);

  const rows = [];
  for (let index = first; index < Math.min(size, first + shown); index += 1) {
    texts[index] ??= names.map((name) => cell(trace.columns[name][index]));
    rows.push(html`<tr key=${index} class=${index === step ? "here" : ""} data-step=${index} onClick=${() => onStep(index)}>${texts[index].map((text) => html`<td>${text}</td>`)}</tr>`);
  }
  return html`<div class="steps-table" ref=${box} onScroll=${(event) => setTop(event.target.scrollTop)}>
    <table><thead><tr>${names.map((name) => html`<th>${name}</th>`)}</tr></thead>
      <tbody><tr style=${{ height: `${first * ROW}px` }}></tr>${rows}<tr style=${{ height: `${Math.max(0, size - first - rows.length) * ROW}px` }}></tr></tbody></table></div>`;
}

function cell(value) {
  return typeof value === "number" ? number(value, 5) : value ?? "";
}
