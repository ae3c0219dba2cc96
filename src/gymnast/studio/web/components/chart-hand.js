// What the mouse does to a chart: zoom into a stretch, pan, zoom at the pointer, show all again.
import { zoomed, zoomTo } from "/web/lib/zoom.js";

const PER_NOTCH = 1.25;
const LEAST_DRAG = 4; // pixels: less was a click

export function hand() {
  return {
    hooks: {
      setSelect: (plot) => {
        const { left, width } = plot.select;
        if (width < LEAST_DRAG || plot.cursor.event?.shiftKey) return;
        zoomTo([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
        plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      },
      ready: (plot) => {
        plot.over.addEventListener("dblclick", () => zoomTo(null));
        plot.over.addEventListener("wheel", (event) => onWheel(plot, event), { passive: false });
        // Before uPlot's own listener, which would begin a selection.
        plot.over.addEventListener("pointerdown", (event) => event.shiftKey && event.button === 0 && pan(plot, event));
        plot.over.addEventListener("mousedown", (event) => event.shiftKey && event.stopImmediatePropagation(), true);
      },
    },
  };
}

function onWheel(plot, event) {
  const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    zoomAt(plot, event.offsetX / plot.over.clientWidth, PER_NOTCH ** Math.sign(event.deltaY));
  } else if (isSideways && zoomed()) {
    event.preventDefault();
    shift(plot, event.deltaX);
  }
}

// `place`: which share of the width stays where it is.
function zoomAt(plot, place, factor) {
  const [low, high] = sides(plot);
  const width = (high - low) * factor;
  const centre = low + place * (high - low);
  put(plot, centre - place * width, centre + (1 - place) * width);
}

function shift(plot, pixels) {
  const [low, high] = sides(plot);
  const by = (pixels * (high - low)) / plot.over.clientWidth;
  put(plot, low + by, high + by);
}

function pan(plot, down) {
  let before = down.clientX;
  plot.over.setPointerCapture(down.pointerId);
  plot.over.classList.add("panning");
  const move = (event) => {
    shift(plot, before - event.clientX);
    before = event.clientX;
  };
  const end = () => {
    plot.over.classList.remove("panning");
    plot.over.removeEventListener("pointermove", move);
  };
  plot.over.addEventListener("pointermove", move);
  plot.over.addEventListener("lostpointercapture", end, { once: true });
}

// On a logarithmic axis stretches are measured in its own lengths.
function sides(plot) {
  const { min, max, distr } = plot.scales.x;
  return distr === 3 ? [Math.log10(min), Math.log10(max)] : [min, max];
}

function put(plot, low, high) {
  const xs = plot.data[0];
  const isLog = plot.scales.x.distr === 3;
  const [first, last] = [xs[0], xs.at(-1)].map((x) => (isLog ? Math.log10(x) : x));
  if (high - low >= last - first) {
    zoomTo(null);
    return;
  }
  // The data stay in view: a pan ends at their edge.
  const by = Math.max(0, first - low) - Math.max(0, high - last);
  const range = [low + by, high + by];
  zoomTo(isLog ? range.map((x) => 10 ** x) : range);
}
