// Keys as they lie on a keyboard, with what they do; those that are down light up.
import { html } from "/web/lib/preact.js";

const SIGNS = { left: "←", right: "→", up: "↑", down: "↓", space: "Space", enter: "Enter", escape: "Esc", tab: "Tab", shift: "Shift", ctrl: "Ctrl", alt: "Alt" };
export const COMMANDS = {
  "take over": "take over, hand back", "next mode": "next player", pause: "pause, go on", step: "a single step",
  faster: "faster", slower: "slower", restart: "restart the episode", save: "save the game",
};

export function sign(key) {
  return SIGNS[key] ?? key.toUpperCase();
}

export function Keycaps({ about, down }) {
  const ours = Object.entries(COMMANDS).map(([command, words]) => [about.commands[command], words]).filter(([keys]) => keys.length > 0);
  return html`<section class="keycaps" aria-label="Keys">
    <div class="of-game">${about.meaning.map(([key, words]) => html`<${Cap} key=${key} keys=${key.split("+")} words=${words} lit=${key.split("+").every((one) => down.includes(one))} />`)}</div>
    <div class="of-page">${ours.map(([keys, words]) => html`<${Cap} key=${words} keys=${keys.slice(0, 1)} words=${words} />`)}</div>
  </section>`;
}

function Cap({ keys, words, lit = false }) {
  return html`<span class=${lit ? "cap lit" : "cap"}>${keys.map((key) => html`<kbd>${sign(key)}</kbd>`)}<em>${words}</em></span>`;
}
