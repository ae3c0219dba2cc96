// The stretch of the x axis that the charts of a page show together; null is all of it.

const listeners = new Set();
let range = null;

export function zoomed() {
  return range;
}

export function zoomTo(next) {
  if (range === next || (range && next && range[0] === next[0] && range[1] === next[1])) return;
  range = next;
  for (const listener of listeners) listener(range);
}

export function onZoom(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
