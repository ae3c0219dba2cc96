// Keys of the page that is shown. They rest while somebody types.
import { useLayoutEffect } from "/web/lib/preact.js";

const active = [];

// `keys`: {key: [what it does in words, function]}.
// Renewed with the rendering itself: an effect after it comes a frame late, and a fast typist's next key would find the old state.
export function useShortcuts(keys) {
  useLayoutEffect(() => {
    active.push(keys);
    return () => active.splice(active.indexOf(keys), 1);
  });
}

export function shortcuts() {
  return Object.assign({}, ...active);
}

// Keys of sliders and checkboxes are the page's: they hold no text.
const WITHOUT_TEXT = ["range", "checkbox", "radio", "button"];

function typing(target) {
  const field = target.closest?.("input, textarea, select, [contenteditable]");
  return Boolean(field) && !WITHOUT_TEXT.includes(field.type);
}

// A button or link that was reached by keyboard is pressed by these; one that was clicked is not in the way.
function pressesSomething(event) {
  const presses = event.key === "Enter" || event.key === " ";
  return presses && Boolean(event.target.closest?.("a:focus-visible, button:focus-visible"));
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target)) {
    // The first Escape empties a search field, the next one leaves it.
    const empties = event.target.type === "search" && event.target.value !== "";
    if (event.key === "Escape" && !empties) event.target.blur();
    return;
  }
  if (pressesSomething(event)) return;
  const found = shortcuts()[event.key];
  if (!found) return;
  event.preventDefault();
  found[1](event);
});
