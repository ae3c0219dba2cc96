// Numbers, times and words as people read them.

// Making a formatter takes far longer than using it, and a table formats a thousand numbers for each step.
const formatters = new Map();
const MOMENT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

function written(value, most, least = 0) {
  const key = 100 * most + least;
  if (!formatters.has(key)) formatters.set(key, new Intl.NumberFormat("en-US", { minimumFractionDigits: least, maximumFractionDigits: most }));
  return formatters.get(key).format(value);
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(2);
  if (Number.isInteger(value) || size >= 10 ** digits) return written(Math.round(value), 0);
  const left = Math.max(0, Math.floor(Math.log10(size)) + 1);
  return written(value, Math.max(0, digits - left));
}

// With one decimal at most, as scores are printed elsewhere.
export function score(value) {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 10) return number(value, 3);
  return written(value, 1, 1);
}

export function count(value) {
  if (value === null || value === undefined) return "–";
  if (value < 10_000) return written(value, 3);
  if (value < 1_000_000) return `${trimmed(value / 1000)}k`;
  if (value < 1_000_000_000) return `${trimmed(value / 1_000_000)}M`;
  return `${trimmed(value / 1_000_000_000)}B`;
}

function trimmed(value) {
  return String(Number(value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 100) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.round(hours / 24)} d`;
}

export function ago(iso) {
  const seconds = (Date.now() - Date.parse(iso)) / 1000;
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 60) return "just now";
  const hours = Math.round(seconds / 3600);
  if (seconds >= 3570 && hours < 48) return `${hours} h ago`;
  return `${duration(seconds)} ago`;
}

export function day(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? "–" : date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}

export function clock(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleTimeString("en-GB");
}

export function moment(iso) {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? "" : MOMENT.format(date);
}

export function percent(share) {
  return share === null || share === undefined ? "–" : `${Math.floor(100 * share)}%`;
}

export function bytes(size) {
  if (size < 1000) return `${size} B`;
  if (size < 1e6) return `${(size / 1e3).toFixed(0)} kB`;
  return `${(size / 1e6).toFixed(1)} MB`;
}

// With all its digits.
export function whole(value) {
  return written(value, 0);
}

export function plural(size, word) {
  return `${size.toLocaleString("en-US")} ${word}${size === 1 ? "" : "s"}`;
}

// The value of a setting for people; a schedule says how it runs.
export function words(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "object" && value.schedule && value.start !== undefined) return `${value.schedule} ${number(value.start)} → ${number(value.end ?? 0)}`;
  return typeof value === "string" ? value : JSON.stringify(value);
}
