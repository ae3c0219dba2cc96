// The frame around every page: navigation, theme, shortcuts, connection.
import { html, render, useEffect, useErrorBoundary, useState } from "/web/lib/preact.js";
import { go, useRoute } from "/web/lib/route.js";
import { connect, listen } from "/web/lib/live.js";
import { shortcuts, useShortcuts } from "/web/lib/shortcuts.js";
import { toggleTheme, useTheme } from "/web/lib/theme.js";
import { useLoaded } from "/web/lib/load.js";
import { Empty } from "/web/components/small.js";
import { RunsPage } from "/web/pages/runs.js";
import { RunPage } from "/web/pages/run.js";
import { ComparePage } from "/web/pages/compare.js";
import { NewRunPage } from "/web/pages/new.js";
import { InspectPage } from "/web/pages/inspect.js";
import { PlayPage } from "/web/pages/play.js";

// Address → page. The first that fits is shown.
const PAGES = [
  [/^\/(?:runs)?$/, () => html`<${RunsPage} />`],
  [/^\/compare$/, () => html`<${ComparePage} />`],
  [/^\/new$/, () => html`<${NewRunPage} />`],
  [/^\/inspect(?:\/([^/]+))?$/, (id) => html`<${InspectPage} key=${id} id=${id && decodeURIComponent(id)} />`],
  [/^\/play$/, () => html`<${PlayPage} />`],
  [/^\/play\/([^/]+)$/, (id) => html`<${PlayPage} key=${id} run=${decodeURIComponent(id)} />`],
  [/^\/runs\/([^/]+)$/, (id) => html`<${RunPage} key=${id} id=${decodeURIComponent(id)} />`],
];
const NAVIGATION = [
  ["/runs", "Runs", "M4 6h16M4 12h16M4 18h10"],
  ["/inspect", "Inspector", "M4 5h16v14H4zM10 9l5 3-5 3z"],
  ["/new", "New run", "M12 5v14M5 12h14"],
  ["/play", "Play", "M7 4l13 8-13 8z"],
];

function App() {
  const { path } = useRoute();
  const [help, showHelp] = useState(false);
  useShortcuts({
    "?": ["show these keys", () => showHelp((shown) => !shown)],
    r: ["runs", () => go("/runs")],
    i: ["inspector", () => go("/inspect")],
    n: ["new run", () => go("/new")],
    t: ["dark or light", toggleTheme],
    Escape: ["close", () => showHelp(false)],
  });
  return html`
    <${Side} path=${path} onHelp=${() => showHelp(true)} />
    <main><${Page} key=${path} path=${path} /></main>
    ${help && html`<${Help} onClose=${() => showHelp(false)} />`}
  `;
}

function Page({ path }) {
  const [error, reset] = useErrorBoundary();
  if (error) {
    return html`<${Empty} title="This page failed">
      <p>${error.message}</p>
      <button onClick=${reset}>Try again</button>
    </${Empty}>`;
  }
  for (const [pattern, page] of PAGES) {
    const found = path.match(pattern);
    if (found) return page(...found.slice(1));
  }
  return html`<${Empty} title="There is no page here"><p><a href="/runs">All runs</a></p></${Empty}>`;
}

function Side({ path, onHelp }) {
  const theme = useTheme();
  const about = useLoaded("/api/about");
  const [connected, setConnected] = useState(true);
  useEffect(() => listen("state", setConnected), []);
  const here = path === "/" ? "/runs" : path;
  return html`<nav class="side">
    <a class="brand" href="/runs"><img src="/web/icon.svg" width="24" height="24" alt="" />gymnast</a>
    ${NAVIGATION.map(([to, name, icon]) => html`<a href=${to} aria-current=${here.startsWith(to) ? "page" : null}><${Icon} path=${icon} />${name}</a>`)}
    <div class="foot">
      ${!connected && html`<span class="offline" title="The studio's process does not answer. The page tries again.">not connected</span>`}
      <span class="root" title=${about.data?.root}>${about.data?.root.split("/").slice(-2).join("/")}</span>
      <span class="tools">
        <button title="Dark or light (t)" onClick=${toggleTheme}><${Icon} path=${theme === "dark" ? "M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9z" : "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM12 1v2M12 21v2M1 12h2M21 12h2"} /></button>
        <button title="Keys (?)" onClick=${onHelp}>?</button>
        <em>${about.data?.version}</em>
      </span>
    </div>
  </nav>`;
}

export function Icon({ path }) {
  return html`<svg class="icon" width="17" height="17" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=${path} /></svg>`;
}

function Help({ onClose }) {
  const keys = Object.entries(shortcuts());
  return html`<div class="veil" onClick=${onClose}>
    <section class="dialog" role="dialog" aria-label="Keys" onClick=${(event) => event.stopPropagation()}>
      <h2>Keys</h2>
      <dl class="keys">${keys.map(([key, [name]]) => html`<dt><kbd>${key === " " ? "space" : key}</kbd></dt><dd>${name}</dd>`)}</dl>
    </section>
  </div>`;
}

connect();
render(html`<${App} />`, document.getElementById("app"));
