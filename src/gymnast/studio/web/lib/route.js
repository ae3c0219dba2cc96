// The address is the view: path and query say all that a colleague needs to see the same.
import { useLayoutEffect, useState } from "/web/lib/preact.js";

const listeners = new Set();

export function go(path, { replace = false } = {}) {
  const here = location.pathname + location.search;
  if (path === here) return;
  history[replace ? "replaceState" : "pushState"](null, "", path);
  announce();
}

export function useRoute() {
  const [, again] = useState(0);
  useLayoutEffect(() => {
    const listener = () => again((count) => count + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

// One parameter of the address as a state. Changing it keeps the place in the history.
export function useQuery(name, initial = "") {
  const { query } = useRoute();
  const set = (value) => setQuery({ [name]: value === initial ? null : value });
  return [query.get(name) ?? initial, set];
}

export function setQuery(changes) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    query.delete(name);
    for (const one of [value].flat()) if (one !== null && one !== undefined && one !== "") query.append(name, one);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), { replace: true });
}

function announce() {
  for (const listener of listeners) listener();
}

addEventListener("popstate", announce);
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='/']");
  const special = event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0;
  if (!link || special || link.target || link.hasAttribute("download") || event.defaultPrevented) return;
  event.preventDefault();
  go(link.getAttribute("href"));
  scrollTo(0, 0);
});
