// Small pieces that every page uses.
import { html, useState } from "/web/lib/preact.js";

const STATE_NAMES = { finished: "finished", running: "running", interrupted: "interrupted", failed: "failed", crashed: "crashed" };

export function State({ run }) {
  const solved = run.solved && run.status === "finished";
  const name = solved ? "solved" : STATE_NAMES[run.status] ?? run.status;
  return html`<span class=${`state ${name}`}><i></i>${name}</span>`;
}

export function Bar({ share }) {
  if (share === null || share === undefined) return null;
  return html`<span class="bar" title=${`${Math.floor(100 * share)}% of the budget`}><i style=${{ width: `${100 * share}%` }}></i></span>`;
}

export function Alerts({ counts }) {
  if (!counts) return null;
  return html`<span class="badges">
    ${["error", "warning", "info"].map((level) => counts[level] > 0 && html`<b class=${level} title=${`${counts[level]} ${level} alert${counts[level] > 1 ? "s" : ""}`}>${counts[level]}</b>`)}
  </span>`;
}

export function Tag({ children, onRemove }) {
  return html`<span class="tag">${children}${onRemove && html`<button title="Remove this tag" onClick=${onRemove}>×</button>`}</span>`;
}

export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}

export function Problem({ text, onRetry }) {
  return html`<div class="problem" role="alert"><span>${text}</span>${onRetry && html`<button onClick=${onRetry}>Try again</button>`}</div>`;
}

export function Waiting({ lines = 4 }) {
  return html`<div class="waiting" aria-busy="true">${Array.from({ length: lines }, () => html`<i></i>`)}</div>`;
}

export function Choice({ value, options, onChange, label }) {
  return html`<div class="choice" role="group" aria-label=${label}>
    ${options.map(([key, name]) => html`<button aria-pressed=${key === value} onClick=${() => onChange(key)}>${name}</button>`)}
  </div>`;
}

export function Toggle({ on, onChange, children, title }) {
  return html`<button class="toggle" aria-pressed=${on} title=${title} onClick=${() => onChange(!on)}>${children}</button>`;
}

// A command to type elsewhere, copied by a click.
export function Command({ text }) {
  const [copied, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    set(true);
    setTimeout(() => set(false), 1200);
  };
  return html`<button class="command" title="Copy" onClick=${copy}><code>${text}</code><em>${copied ? "copied" : "copy"}</em></button>`;
}

// A button that waits for what it does, and shows the sentence of a failure next to itself.
export function Action({ onClick, children, kind = "", title, disabled = false }) {
  const [state, set] = useState({ busy: false, error: null });
  const act = async () => {
    set({ busy: true, error: null });
    try {
      await onClick();
      set({ busy: false, error: null });
    } catch (error) {
      set({ busy: false, error: error.message });
    }
  };
  return html`<span class="action">
    <button class=${kind} title=${title} disabled=${disabled || state.busy} onClick=${act}>${state.busy ? html`<i class="spinner"></i>` : null}${children}</button>
    ${state.error && html`<span class="inline-problem" role="alert">${state.error}</span>`}
  </span>`;
}
