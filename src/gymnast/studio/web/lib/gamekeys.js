// From the keyboard to a game: the browser's keys by the names that games use, and commands besides them.
import { useLayoutEffect, useState } from "/web/lib/preact.js";

const NAMES = {
  " ": "space", ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", Enter: "enter", Escape: "escape",
  Tab: "tab", Shift: "shift", Control: "ctrl", Alt: "alt", Backspace: "backspace", Delete: "delete",
};
const REPEATED = ["step", "faster", "slower"];
const REPEAT_EVERY = 110;
// The page has these itself: its own keys, and a button to stop.
const OF_WINDOWS = ["help", "quit"];

// Commands by key, without those that only windows have.
export function commandsByKey(about) {
  const found = {};
  for (const [command, keys] of Object.entries(about.commands)) {
    if (!OF_WINDOWS.includes(command)) for (const key of keys) found[key] = command;
  }
  return found;
}

// Sends keys to `game` while it is played, before the page's own shortcuts see them. Gives the keys that are down.
export function useGameKeys(game, about) {
  const [down, setDown] = useState([]);
  useLayoutEffect(() => {
    if (!game || !about) return undefined;
    const commands = commandsByKey(about);
    const held = new Map(); // where a key lies → its name: with Shift up again it might have another name
    const pressedAt = {};
    const show = () => setDown([...held.values()]);

    const onDown = (event) => {
      if (isTyping(event.target) || isForTheBrowser(event, about)) return;
      const name = nameOf(event, (key) => about.keys.includes(key) || key in commands);
      const command = commands[name];
      if (about.keys.includes(name)) {
        stop(event);
        const now = performance.now();
        // A key that is held is one turn, and after a while many; a game that runs on looks at what is held.
        if (event.repeat && (!about.turns || now - pressedAt[name] < REPEAT_EVERY)) return;
        pressedAt[name] = now;
        held.set(event.code, name);
        game.send({ press: name });
        show();
      } else if (command) {
        if (name === "tab" && !isFree(document.activeElement)) return; // Tab goes on through the buttons
        stop(event);
        if (!event.repeat || REPEATED.includes(command)) game.send({ command });
      }
    };
    const onUp = (event) => {
      const name = held.get(event.code);
      if (name === undefined) return;
      stop(event);
      held.delete(event.code);
      game.send({ release: name });
      show();
    };
    // Keys that go up elsewhere are not told.
    const releaseAll = () => {
      if (held.size === 0) return;
      held.clear();
      game.send({ release: null });
      show();
    };
    const onFocus = (event) => isTyping(event.target) && releaseAll();
    const onHidden = () => document.hidden && releaseAll();

    addEventListener("keydown", onDown, true);
    addEventListener("keyup", onUp, true);
    addEventListener("blur", releaseAll);
    addEventListener("focusin", onFocus);
    document.addEventListener("visibilitychange", onHidden);
    return () => {
      removeEventListener("keydown", onDown, true);
      removeEventListener("keyup", onUp, true);
      removeEventListener("blur", releaseAll);
      removeEventListener("focusin", onFocus);
      document.removeEventListener("visibilitychange", onHidden);
      setDown([]);
    };
  }, [game, about]);
  return down;
}

function nameOf(event, isKnown) {
  const name = NAMES[event.key] ?? event.key.toLowerCase();
  if (isKnown(name)) return name;
  // With Shift, or on another layout: what is printed where the key lies on the usual one.
  const place = event.code.match(/^(?:Key|Digit|Numpad)([A-Z0-9])$/);
  return place ? place[1].toLowerCase() : name;
}

function isForTheBrowser(event, about) {
  if (event.metaKey) return true;
  if (event.ctrlKey && !about.keys.includes("ctrl")) return true;
  if (event.altKey && !about.keys.includes("alt")) return true;
  return event.key === "Tab" && event.shiftKey;
}

function isTyping(target) {
  return Boolean(target.closest?.("input, textarea, select, [contenteditable]"));
}

function isFree(element) {
  return element === null || element === document.body || element.classList.contains("stage");
}

function stop(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}
