// A recorded film, shown at a step. Every frame is a key frame, so that a seek decodes one picture and asks no server.
import { html, useLayoutEffect, useRef } from "/web/lib/preact.js";

export function Film({ film, base, step, className = "" }) {
  const video = useRef(null);
  const wanted = useRef(0);
  // The middle of a frame's time: the exact beginning may still show the one before.
  const time = (Math.min(step, film.count - 1) + 0.5) / film.fps;

  useLayoutEffect(() => {
    wanted.current = time;
    seek(video.current, wanted);
  }, [time]);

  return html`<video class=${`film ${className} ${film.width < 200 ? "coarse" : ""}`} ref=${video} src=${base + film.file} data-step=${step} width=${film.width} height=${film.height} muted playsinline preload="auto"
    onLoadedData=${() => seek(video.current, wanted)} onSeeked=${() => { note(video.current, film); seek(video.current, wanted); }}></video>`;
}

// Which frame the picture shows now; it may still be on its way to `data-step`.
function note(video, film) {
  video.dataset.frame = String(Math.floor(video.currentTime * film.fps));
}

// One seek at a time, always to the newest place: a queue of seeks would lag behind the hand.
function seek(video, wanted) {
  if (!video || video.readyState < 1 || video.seeking) return;
  if (Math.abs(video.currentTime - wanted.current) > 1e-4) video.currentTime = wanted.current;
}
