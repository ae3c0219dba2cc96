// Value, reward with its terms, and return while somebody plays: the last few hundred steps of the episode.
import { html, useEffect, useRef } from "/web/lib/preact.js";
import { curveColour, useTheme } from "/web/lib/theme.js";
import { paint } from "/web/components/step-chart.js";
import { short, signed } from "/web/components/playing.js";

const SEEN = 300; // steps that a chart shows
const LEAST = 60; // steps for which there is always room, so that the first ones do not stretch over the whole width
const MOST_TERMS = 6;

export const NO_COURSE = { rewards: [], values: [], returns: [], terms: {} };

// The steps of the episode so far, from what each moment adds.
export function longer(course, news) {
  const before = news.fresh ? NO_COURSE : course;
  const returns = [...before.returns];
  for (const reward of news.rewards) returns.push((returns.at(-1) ?? 0) + reward);
  const names = [...new Set([...Object.keys(before.terms), ...Object.keys(news.terms)])];
  const size = before.rewards.length;
  const nothing = (length) => new Array(length).fill(null);
  const terms = names.map((name) => [name, latest([...(before.terms[name] ?? nothing(size)), ...(news.terms[name] ?? nothing(news.rewards.length))])]);
  return {
    rewards: latest([...before.rewards, ...news.rewards]),
    values: latest([...before.values, ...news.values]),
    returns: latest(returns),
    terms: Object.fromEntries(terms),
  };
}

function latest(values) {
  return values.slice(-SEEN);
}

export function LiveCharts({ course, hasValues }) {
  const terms = Object.entries(course.terms).slice(0, MOST_TERMS);
  const reward = terms.length > 0
    ? terms.map(([label, y], index) => ({ label, colour: curveColour(index + 1), y }))
    : [{ label: "", colour: curveColour(0), y: course.rewards }];
  return html`<div class="stepcharts live">
    ${hasValues && html`<${LiveChart} name="value" title="What the critic predicts from here, in the run's reward scale" series=${[{ label: "", colour: curveColour(0), y: course.values }]} />`}
    <${LiveChart} name=${terms.length > 0 ? "reward terms" : "reward"} title="The env's own, of each step" series=${reward} />
    <${LiveChart} name="return" title="Of the episode so far" series=${[{ label: "", colour: curveColour(0), y: course.returns }]} />
  </div>`;
}

function LiveChart({ name, title, series }) {
  const canvas = useRef(null);
  const theme = useTheme();
  useEffect(() => paint(canvas.current, series, Math.max(LEAST, ...series.map(({ y }) => y.length))), [series, theme]);
  return html`<figure class="stepchart" title=${title}>
    <figcaption><b>${name}</b>${series.map((one) => html`<span><i style=${{ background: one.colour }}></i>${one.label} <output>${(name === "return" ? short : signed)(one.y.at(-1))}</output></span>`)}</figcaption>
    <div class="plane"><canvas ref=${canvas}></canvas></div>
  </figure>`;
}
