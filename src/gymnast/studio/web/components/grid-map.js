// A grid world with what the policy makes of every cell, and an editor of the map.
import { html, useEffect, useState } from "/web/lib/preact.js";
import { get, post } from "/web/lib/server.js";
import { go } from "/web/lib/route.js";
import { number } from "/web/lib/format.js";
import { Empty, Problem, Toggle } from "/web/components/small.js";

const POLL = 400;
const LOOK_AGAIN = 2000;
const NEXT_LETTER = { F: "H", H: "S", S: "G", G: "F" };

export function MapPanel({ map, state, labels, config }) {
  const [editing, edit] = useState(false);
  return html`<div class="mappanel">
    ${editing ? html`<${MapEditor} map=${map} config=${config} />` : html`<${GridView} map=${map} state=${state} labels=${labels} />`}
    ${map.editable && html`<${Toggle} on=${editing} onChange=${edit} title="Change cells, start and rewards, and train on that">edit the map</${Toggle}>`}
  </div>`;
}

export function GridView({ map, state, labels }) {
  const values = map.rows.flat().filter(isLivedIn).map((cell) => cell.value).filter((value) => value !== null);
  const low = Math.min(...values);
  const range = Math.max(...values) - low || 1;
  return html`<table class="grid" aria-label="Value and greedy action of every cell"><tbody>${map.rows.map((row) => html`<tr>${row.map((cell) => {
    const best = cell.probabilities.indexOf(Math.max(...cell.probabilities));
    const isKnown = isLivedIn(cell) && cell.value !== null;
    const level = isKnown ? (cell.value - low) / range : 0;
    const chances = cell.probabilities.map((share, action) => `${labels?.[action] ?? action}: ${(100 * share).toFixed(0)}%`);
    return html`<td class=${`${cell.state === state ? "here" : ""} cell-${cell.letter}`} style=${{ "--level": level.toFixed(3) }} title=${chances.join("\n")}>
      <em>${cell.letter}</em><b>${isLivedIn(cell) ? map.arrows[best] : ""}</b><span>${isKnown ? number(cell.value, 3) : ""}</span></td>`;
  })}</tr>`)}</tbody></table>`;
}

// The agent never acts in holes, goals and the cliff: what the networks say there means nothing.
function isLivedIn(cell) {
  return !"HGC".includes(cell.letter);
}

// A click turns a cell into the next kind; S is where episodes begin.
function MapEditor({ map, config }) {
  const [letters, set] = useState(map.rows.map((row) => row.map((cell) => cell.letter)));
  const [rewards, setRewards] = useState(["1", "0", "0"]);
  const turn = (row, column) => set(letters.map((line, y) => line.map((letter, x) => (y === row && x === column ? NEXT_LETTER[letter] : letter))));
  const has = (letter) => letters.flat().includes(letter);
  const problem = !has("S") ? "The map needs a start (S)." : !has("G") ? "The map needs a goal (G)." : rewards.some((text) => !Number.isFinite(Number(text)) || text === "") ? "Rewards are numbers." : null;
  const train = () => {
    const desc = JSON.stringify(letters.map((line) => line.join("")));
    const settings = [`env.kwargs.desc=${desc}`, `env.kwargs.reward_schedule=[${rewards.map(Number).join(",")}]`];
    const query = new URLSearchParams([["config", config], ...settings.map((one) => ["set", one])]);
    go(`/new?${query}`);
  };
  return html`<div class="mapeditor">
    <table class="grid editing" aria-label="The map; a click changes a cell"><tbody>${letters.map((row, y) => html`<tr>${row.map((letter, x) => html`<td class=${`cell-${letter}`}><button onClick=${() => turn(y, x)}>${letter}</button></td>`)}</tr>`)}</tbody></table>
    <div class="controls">${["goal", "hole", "ice"].map((name, index) => html`<label class="inline">${name} <input size="4" value=${rewards[index]} onInput=${(event) => setRewards(rewards.map((one, place) => (place === index ? event.target.value : one)))} /></label>`)}
      <button class="primary" disabled=${problem !== null} onClick=${train}>Train on this map</button></div>
    ${problem && html`<p class="inline-problem">${problem}</p>`}
  </div>`;
}

// The map by the newest checkpoint, again and again while the run trains.
export function LiveMap({ id, running }) {
  const [state, set] = useState({ trace: null, error: null });
  useEffect(() => {
    let stale = false;
    const wait = (time) => new Promise((ready) => setTimeout(ready, time));
    const look = async () => {
      let answer = await post(`/api/runs/${id}/traces`, { checkpoint: "last", max_steps: 1 });
      while (answer.state === "running" && !stale) {
        await wait(POLL);
        answer = await get(`/api/runs/${id}/traces/${answer.key}`);
      }
      if (answer.state === "failed") throw new Error(answer.error);
      return stale ? null : get(`/files/${id}/traces/${answer.key}/trace.json`);
    };
    const follow = async () => {
      while (!stale) {
        try {
          const trace = await look();
          if (!stale) set({ trace, error: null });
        } catch (error) {
          // A run that has just begun has no checkpoint yet.
          if (!stale) set((before) => ({ ...before, error: error.message }));
        }
        if (!running) return;
        await wait(LOOK_AGAIN);
      }
    };
    follow();
    return () => {
      stale = true;
    };
  }, [id, running]);
  if (state.error && !state.trace) return html`<${Problem} text=${state.error} />`;
  if (!state.trace) return html`<div class="rolling"><i class="spinner"></i> Asking the newest checkpoint</div>`;
  if (!state.trace.map) return html`<${Empty} title="This env has no map"><p>FrozenLake and CliffWalking have one.</p></${Empty}>`;
  return html`<p class="dim">By ${state.trace.checkpoint}.</p><${GridView} map=${state.trace.map} labels=${state.trace.labels} />`;
}
