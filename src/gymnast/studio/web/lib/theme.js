// Dark or light: as the system says, until the user chooses.
import { useLayoutEffect, useState } from "/web/lib/preact.js";

const KEY = "gymnast-theme";
const system = matchMedia("(prefers-color-scheme: light)");
const listeners = new Set();

function current() {
  return localStorage.getItem(KEY) ?? (system.matches ? "light" : "dark");
}

function apply() {
  document.documentElement.dataset.theme = current();
  for (const listener of listeners) listener();
}

export function toggleTheme() {
  localStorage.setItem(KEY, current() === "dark" ? "light" : "dark");
  apply();
}

export function useTheme() {
  const [theme, set] = useState(current());
  useLayoutEffect(() => {
    const listener = () => set(current());
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return theme;
}

// A token's value, for what is drawn on a canvas.
export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const CURVE_COLOURS = 8;

export function curveColour(index) {
  return token(`curve-${(index % CURVE_COLOURS) + 1}`);
}

system.addEventListener("change", apply);
apply();
