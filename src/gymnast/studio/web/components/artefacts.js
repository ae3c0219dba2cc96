// What a run has on disk: videos, checkpoints, log, report.
import { html, useEffect, useRef } from "/web/lib/preact.js";
import { useLoaded } from "/web/lib/load.js";
import { bytes } from "/web/lib/format.js";
import { Command, Empty, Problem, Waiting } from "/web/components/small.js";

const LOG_EVERY = 1500;

export function Videos({ id, videos }) {
  if (videos.length === 0) return html`<${Empty} title="No videos yet"><p>Record one of the best checkpoint:</p><${Command} text=${`gymnast video ${id}`} /></${Empty}>`;
  return html`<div class="videos">${videos.map((video) => {
    const source = `/files/${id}/videos/${encodeURIComponent(video.name)}`;
    return html`<figure class="card" key=${video.name}>
      ${video.name.endsWith(".gif") ? html`<img src=${source} alt=${video.name} />` : html`<video src=${source} controls loop muted playsinline preload="metadata"></video>`}
      <figcaption><b>${video.name}</b><span class="space"></span><em>${bytes(video.size)}</em><a href=${source} download title="Save">⤓</a></figcaption>
    </figure>`;
  })}</div>`;
}

export function Checkpoints({ id, checkpoints }) {
  if (checkpoints.length === 0) return html`<${Empty} title="No checkpoint yet"><p>The first is written at a tenth of the budget, or when the run stops.</p></${Empty}>`;
  return html`<table class="plain"><thead><tr><th>checkpoint</th><th></th><th></th><th>evaluate it</th></tr></thead>
    <tbody>${checkpoints.toReversed().map((one) => html`<tr key=${one.name}>
      <td class="mono">${one.name}</td>
      <td>${one.best && html`<span class="tag good">best</span>`}${one.last && html`<span class="tag">last</span>`}</td>
      <td><a href=${`/inspect/${id}?ckpt=${one.name}`}>inspect</a></td><td><${Command} text=${`gymnast eval ${id}/${one.name}`} /></td></tr>`)}</tbody></table>`;
}

export function Log({ id, running }) {
  const found = useLoaded(`/api/runs/${id}/log`);
  const end = useRef(null);
  useEffect(() => {
    if (!running) return () => {};
    const timer = setInterval(found.reload, LOG_EVERY);
    return () => clearInterval(timer);
  }, [running, found.reload]);
  useEffect(() => end.current?.scrollTo(0, end.current.scrollHeight), [found.data?.text]);
  if (found.error) return html`<${Problem} text=${found.error} onRetry=${found.reload} />`;
  if (found.waiting) return html`<${Waiting} lines=${8} />`;
  if (!found.data.text) return html`<${Empty} title="The log is empty" />`;
  return html`${!found.data.whole && html`<p class="dim">The end of a long log. <a href=${`/files/${id}/log.txt`} target="_blank">All of it</a></p>`}
    <pre class="log" ref=${end}>${found.data.text}</pre>`;
}

export function Report({ id, there }) {
  if (!there) return html`<${Empty} title="No report yet"><p>It is written when the run ends, and again by:</p><${Command} text=${`gymnast report ${id}`} /></${Empty}>`;
  return html`<iframe class="report" src=${`/files/${id}/report.html`} sandbox="" title="Report"></iframe>`;
}
