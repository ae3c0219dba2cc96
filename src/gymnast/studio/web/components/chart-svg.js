// What a chart shows as an SVG file, for papers and slides.
import { count, number } from "/web/lib/format.js";

const WIDTH = 720;
const HEIGHT = 420;
const LEFT = 66;
const TOP = 40;
const RIGHT = 16;
const BOTTOM = 46;

export function chartAsSvg({ title, series, axis, log = false }) {
  const xs = series.flatMap((one) => one.x);
  const ys = series.flatMap((one) => [...one.y, ...(one.low ?? []), ...(one.high ?? [])]).filter((value) => value !== null && Number.isFinite(value) && (!log || value > 0));
  const [x0, x1] = bounds(xs);
  const height = log ? Math.log10 : (value) => value;
  const [y0, y1] = bounds(ys.map(height));
  const px = (x) => LEFT + ((x - x0) / (x1 - x0 || 1)) * (WIDTH - LEFT - RIGHT);
  const py = (y) => HEIGHT - BOTTOM - ((height(y) - y0) / (y1 - y0 || 1)) * (HEIGHT - TOP - BOTTOM);
  const parts = [
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    `<text x="${LEFT}" y="22" font-size="15" font-weight="600">${escaped(title)}</text>`,
    ...ticks(x0, x1).map((x) => `<line x1="${px(x)}" x2="${px(x)}" y1="${TOP}" y2="${HEIGHT - BOTTOM}" stroke="#e5e8ec"/><text x="${px(x)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${count(x)}</text>`),
    ...ticks(y0, y1).map((y) => {
      const value = log ? 10 ** y : y;
      return `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${py(value)}" y2="${py(value)}" stroke="#e5e8ec"/><text x="${LEFT - 8}" y="${py(value) + 4}" text-anchor="end">${number(value, 3)}</text>`;
    }),
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 8}" text-anchor="middle">${axis === "time" ? "seconds" : axis.replace("_", " ")}</text>`,
  ];
  series.forEach((one, index) => {
    if (one.low) {
      const there = one.x.map((_, place) => place).filter((place) => Number.isFinite(one.low[place]) && one.low[place] !== null);
      const upper = there.map((place) => `${px(one.x[place]).toFixed(1)},${py(one.high[place]).toFixed(1)}`);
      const lower = there.map((place) => `${px(one.x[place]).toFixed(1)},${py(one.low[place]).toFixed(1)}`).reverse();
      parts.push(`<polygon points="${[...upper, ...lower].join(" ")}" fill="${one.colour}" opacity="0.18"/>`);
    }
    const line = one.x
      .map((x, place) => [x, one.y[place]])
      .filter(([, y]) => y !== null && Number.isFinite(y) && (!log || y > 0))
      .map(([x, y]) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`);
    parts.push(`<polyline points="${line.join(" ")}" fill="none" stroke="${one.colour}" stroke-width="1.8"/>`);
    if (series.length > 1) {
      parts.push(`<rect x="${WIDTH - RIGHT - 170}" y="${TOP + 18 * index}" width="12" height="3" fill="${one.colour}"/><text x="${WIDTH - RIGHT - 152}" y="${TOP + 6 + 18 * index}">${escaped(one.label)}</text>`);
    }
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="11" fill="#333">${parts.join("\n")}</svg>\n`;
}

function bounds(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low > high ? [0, 1] : [low, high];
}

function ticks(low, high) {
  const rough = (high - low) / 5 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) found.push(Number(value.toPrecision(12)));
  return found;
}

function escaped(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
