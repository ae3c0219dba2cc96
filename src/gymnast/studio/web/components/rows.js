// A long list of rows of one height, of which only those in view exist.
import { html, useEffect, useLayoutEffect, useRef, useState } from "/web/lib/preact.js";

const SPARE = 8;

// `onView(first, last)` is called with the visible rows; `at` is a row that should be in view.
export function Rows({ size, height, row, onView, at }) {
  const list = useRef(null);
  const [view, set] = useState([0, 40]);

  useLayoutEffect(() => {
    const look = () => {
      const top = list.current.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(-top / height) - SPARE);
      const last = Math.min(size, Math.ceil((innerHeight - top) / height) + SPARE);
      set((known) => (known[0] === first && known[1] === last ? known : [first, Math.max(first, last)]));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [size, height]);

  useEffect(() => onView?.(view[0], view[1]), [view[0], view[1], size]);
  useEffect(() => {
    if (at === null || at === undefined || at < 0) return;
    const top = list.current.getBoundingClientRect().top + at * height;
    if (top < 140) scrollBy(0, top - 140);
    else if (top + height > innerHeight) scrollBy(0, top + height - innerHeight + 20);
  }, [at]);

  const [first, last] = view;
  const shown = [];
  for (let index = first; index < Math.min(last, size); index += 1) shown.push(row(index));
  return html`<div class="rows" ref=${list} style=${{ height: `${size * height}px` }}>
    <div style=${{ transform: `translateY(${first * height}px)` }}>${shown}</div>
  </div>`;
}
