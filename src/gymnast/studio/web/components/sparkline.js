// A curve as small as a word.
import { html } from "/web/lib/preact.js";

export function Sparkline({ values, width = 110, height = 26 }) {
  if (!values || values.length < 2) return html`<svg width=${width} height=${height}></svg>`;
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  const points = values.map((value, index) => {
    const x = (index / (values.length - 1)) * (width - 2) + 1;
    const y = height - 2 - ((value - low) / range) * (height - 4);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return html`<svg class="sparkline" width=${width} height=${height} aria-hidden="true"><polyline points=${points.join(" ")} /></svg>`;
}
