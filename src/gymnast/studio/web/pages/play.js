// Play: choose what, then play it by keyboard, or watch a policy or chance, and switch between them.
import { html, useEffect, useMemo, useRef, useState } from "/web/lib/preact.js";
import { useLoaded } from "/web/lib/load.js";
import { useQuery } from "/web/lib/route.js";
import { openGame } from "/web/lib/game.js";
import { useGameKeys } from "/web/lib/gamekeys.js";
import { Choice, Command, Problem, Waiting } from "/web/components/small.js";
import { Keycaps, sign } from "/web/components/keycaps.js";
import { longer, NO_COURSE } from "/web/components/live-charts.js";
import { Numbers, Panel, short } from "/web/components/playing.js";
import { useRuns } from "/web/pages/runs.js";

const MOST_RUNS = 12;
const PIXELATED_BELOW = 400; // pixels in width: small pictures are enlarged with sharp edges
const RATE_OVER = 1000;
const ATARI_FRAME = "env.atari.skip=1";

export function PlayPage({ run = null }) {
  const [config, setConfig] = useQuery("config");
  if (!run && !config) return html`<header class="page"><h1>Play</h1></header><${Choose} onChoose=${setConfig} />`;
  return html`<${Session} key=${run ?? config} run=${run} config=${config} onOther=${run ? null : () => setConfig("")} />`;
}

function Choose({ onChoose }) {
  const found = useLoaded("/api/configs");
  const runs = useRuns();
  const [text, setText] = useState("");
  if (found.error) return html`<${Problem} text=${found.error} onRetry=${found.reload} />`;
  if (found.waiting) return html`<${Waiting} lines=${8} />`;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (line) => words.every((word) => line.toLowerCase().includes(word));
  const envs = found.data.envs.filter((env) => env.variants.length > 0 && !env.id.includes("*") && fits(`${env.id} ${env.family} ${env.description}`));
  const trained = [...(runs?.values() ?? [])].filter((run) => fits(`${run.id} ${run.config}`)).slice(0, MOST_RUNS);
  return html`
    <div class="controls"><input class="big" type="search" autofocus placeholder="CartPole, Pong, a run…" aria-label="Search what to play" value=${text} onInput=${(event) => setText(event.target.value)} /></div>
    ${trained.length > 0 && html`<h2>A trained policy</h2><div class="chips policies">${trained.map((run) => html`<a class="button" key=${run.id} href=${`/play/${run.id}`}>${run.config}<em class="mono">${run.id}</em></a>`)}</div>`}
    <h2>An environment</h2>
    <div class="envs">${envs.map((env) => html`<article class=${`card env ${env.installed ? "" : "missing"}`} key=${env.id}>
      <header><b>${env.id}</b><span class="space"></span><em>${env.family}</em></header>
      <p>${env.description}</p>
      <div class="variants"><button disabled=${!env.installed} onClick=${() => onChoose(env.id)}>Play</button></div>
      ${!env.installed && html`<${Command} text=${env.install} />`}
    </article>`)}</div>
    ${envs.length === 0 && trained.length === 0 && html`<p>No env matches. Any Gymnasium id can be played: <button disabled=${!text.includes("-v")} onClick=${() => onChoose(text.trim())}>${text.trim()}</button></p>`}
  `;
}

function Session({ run, config, onOther }) {
  const [start, setStart] = useState(null);
  const [problem, setProblem] = useState(null);
  const stop = (sentence = null) => {
    setProblem(sentence);
    setStart(null);
  };
  if (!start) return html`<${Setup} run=${run} config=${config} problem=${problem} onOther=${onOther} onStart=${setStart} />`;
  return html`<${Game} start=${start} onEnd=${stop} />`;
}

// Nothing runs before somebody asks for it: an address may come from anywhere.
function Setup({ run, config, problem, onOther, onStart }) {
  const found = useLoaded(run && `/api/runs/${encodeURIComponent(run)}`);
  const [mode, setMode] = useQuery("mode", run ? "policy" : "human");
  const [seed, setSeed] = useQuery("seed", "0");
  const [fps, setFps] = useQuery("fps");
  const [checkpoint, setCheckpoint] = useQuery("checkpoint");
  const [actions, setActions] = useQuery("actions");
  const [settings, setSettings] = useState(config.startsWith("ALE/") ? ATARI_FRAME : "");
  if (found.error) return html`<${Problem} text=${found.error} onRetry=${found.reload} />`;
  if (run && found.waiting) return html`<${Waiting} lines=${4} />`;
  const modes = [...(run ? [["policy", "the policy"]] : []), ["human", "you"], ["random", "chance"]];
  const begin = (event) => {
    event.preventDefault();
    const wanted = { mode, seed: Number(seed), fps: fps ? Number(fps) : null };
    if (run) Object.assign(wanted, { run: found.data.details.id, checkpoint: checkpoint || null, sampled: actions ? actions === "sampled" : null });
    else Object.assign(wanted, { config, overrides: settings.split(/\s+/).filter(Boolean) });
    onStart(wanted);
  };
  const details = found.data?.details;
  return html`
    <header class="page"><h1>Play</h1><b>${details?.name ?? config}</b>${run && html`<a class="mono" href=${`/runs/${run}`}>${run}</a>`}${onOther && html`<button onClick=${onOther}>Other env</button>`}</header>
    ${problem && html`<${Problem} text=${problem} />`}
    <form class="card setup" onSubmit=${begin}>
      <label><span>who begins</span><${Choice} label="Who begins" value=${mode} options=${modes} onChange=${setMode} /></label>
      ${run && html`<label><span>checkpoint</span><select value=${checkpoint} onChange=${(event) => setCheckpoint(event.target.value)}><option value="">best, else last</option>${details.checkpoints.toReversed().map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select></label>`}
      ${run && html`<label><span>actions</span><${Choice} label="Actions" value=${actions} options=${[["", "as evaluated"], ["sampled", "sampled"], ["greedy", "greedy"]]} onChange=${setActions} /></label>`}
      <label><span>seed</span><input type="number" min="0" max="2147483647" required value=${seed} onInput=${(event) => setSeed(event.target.value)} /></label>
      <label><span>frames per second</span><input type="number" min="0.1" max="1000" step="any" placeholder="the env's own" value=${fps} onInput=${(event) => setFps(event.target.value)} /></label>
      ${!run && html`<label><span>settings</span><input class="wide mono" spellcheck="false" placeholder="env.kwargs.is_slippery=false" value=${settings} onInput=${(event) => setSettings(event.target.value)} /></label>`}
      <button class="primary" autofocus>Play</button>
    </form>`;
}

function Game({ start, onEnd }) {
  const [game, setGame] = useState(null);
  const [about, setAbout] = useState(null);
  const [moment, setMoment] = useState(null);
  const [results, setResults] = useState([]);
  const course = useRef(NO_COURSE);
  const canvas = useRef(null);
  const stage = useRef(null);
  const rate = useMemo(() => pace(), []);

  useEffect(() => {
    const opened = openGame(start, {
      game: setAbout,
      moment: (what, bitmap) => {
        if (bitmap) {
          paint(canvas.current, bitmap);
          rate.count();
        }
        course.current = longer(course.current, what.course);
        setMoment(what);
        if (what.ended.length > 0) setResults((before) => [...before, ...what.ended].slice(-100));
      },
      end: ({ error }) => onEnd(error ?? null),
    });
    setGame(opened);
    const leave = () => opened.close();
    addEventListener("pagehide", leave);
    return () => {
      removeEventListener("pagehide", leave);
      opened.close();
    };
  }, []);
  const down = useGameKeys(game, about);
  useEffect(() => stage.current?.focus(), [about !== null]);
  // After a click on a button the keys are the game's again.
  const back = (event) => event.target.closest("button") && stage.current?.focus();

  return html`
    <header class="page"><h1>${about?.title ?? "Play"}</h1><em class="rate">${moment ? `${rate.now()} pictures/s` : ""}</em><span class="space"></span><button onClick=${() => onEnd()}>Stop</button></header>
    ${about && moment && html`<div onClick=${back}><${Controls} game=${game} about=${about} moment=${moment} /></div>`}
    <div class="play">
      <div>
        <div class="stage" ref=${stage} tabindex="0" role="application" aria-label="The game">
          <canvas ref=${canvas} width="600" height="400" hidden=${Boolean(about?.no_picture)}></canvas>
          ${about?.no_picture && moment && html`<${Numbers} reason=${about.no_picture} observation=${moment.observation} />`}
          ${!moment && html`<span class="starting"><i class="spinner"></i>starting…</span>`}
        </div>
        <p class="message" role="status">${about && moment ? message(moment, about) : ""}</p>
        ${about && html`<${Keycaps} about=${about} down=${down} />`}
      </div>
      ${about && moment && html`<${Panel} about=${about} view=${moment.view} results=${results} course=${course.current} />`}
    </div>`;
}

function Controls({ game, about, moment }) {
  const { view } = moment;
  const command = (name) => () => game.send({ command: name });
  const names = { policy: "policy", human: "you", random: "chance" };
  const setPace = (event) => {
    const fps = Number(event.target.value);
    if (fps > 0) game.send({ fps });
  };
  return html`<div class="controls">
    <${Choice} label="Who plays" value=${view.mode} options=${about.modes.map((mode) => [mode, names[mode] ?? mode])} onChange=${(mode) => game.send({ mode })} />
    <button class="fixed" aria-pressed=${view.paused} title="P" onClick=${command("pause")}>${view.paused ? "Go on" : "Pause"}</button>
    <button title="N" onClick=${command("step")}>Step</button>
    <button title="R" onClick=${command("restart")}>Restart</button>
    <span class="choice speed"><button title="Slower (−)" onClick=${command("slower")}>−</button><button class="fixed" disabled>×${view.speed}</button><button title="Faster (+)" onClick=${command("faster")}>+</button></span>
    <label class="inline"><input type="number" min="0.1" max="1000" step="any" aria-label="Frames per second" value=${Number(moment.fps.toPrecision(4))} onChange=${setPace} /> fps</label>
    <span class="space"></span>
    <${Record} game=${game} about=${about} moment=${moment} />
  </div>`;
}

function Record({ game, about, moment }) {
  const [name, setName] = useState(`play/${about.env.toLowerCase().replace(/-v\d+$/, "").replace(/[^a-z0-9]+/g, "-")}`);
  const { recording, recorded, problem } = moment;
  if (recording) {
    return html`<span class="recording"><i></i><code>${recording.id}</code> ${amount(recording.episodes, "episode")}</span><button onClick=${() => game.send({ record: null })}>Stop recording</button>`;
  }
  return html`
    ${problem && html`<span class="inline-problem" role="alert">${problem}</span>`}
    ${recorded && html`<span class="dim">${recorded.episodes > 0 ? html`<code>${recorded.id}</code>: ${amount(recorded.episodes, "episode")}, ${amount(recorded.steps, "step")}` : "nothing was recorded"}</span>`}
    <input class="mono" size="18" spellcheck="false" aria-label="Dataset" title="Id of a Minari dataset; without -vN it gets the next free version" value=${name} onInput=${(event) => setName(event.target.value)} />
    <button title="Restart the episode and write a Minari dataset" onClick=${() => game.send({ record: name })}>Record</button>`;
}

function message({ view, black }, about) {
  if (view.outcome && view.last) return `${view.outcome} after ${view.last.length.toLocaleString("en")} steps: return ${short(view.last.ret)}`;
  if (view.note) return `${view.note}: press another key`;
  if (view.paused) return "paused: P continues, N makes one step";
  if (view.waiting) return `waits for a key: ${about.meaning.slice(0, 4).map(([key]) => key.split("+").map(sign).join("+")).join(", ")}`;
  return black;
}

function paint(canvas, bitmap) {
  if (!canvas) return;
  if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
    [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
    canvas.style.setProperty("--ratio", bitmap.width / bitmap.height);
    canvas.classList.toggle("pixelated", bitmap.width < PIXELATED_BELOW);
  }
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  bitmap.close();
}

function amount(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

// How many pictures were shown in the last second.
function pace() {
  const times = [];
  return {
    count: () => times.push(performance.now()),
    now: () => {
      while (times.length > 0 && times[0] < performance.now() - RATE_OVER) times.shift();
      return times.length;
    },
  };
}
