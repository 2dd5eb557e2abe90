// The verdict over the last hour, as a strip: the worse, the higher.

import { h, s, text, update } from './dom.js';
import { Cursor } from './cursor.js';
import { clock, hourMinute, span } from './format.js';
import { timeTicks } from './scale.js';

const heights = { ok: 0.22, warning: 0.55, unknown: 0.75, critical: 1 };
const breakAfter = 2.5;
const margin = { left: 1, right: 1, bottom: 20 };

export class Strip {
  #note; #area; #svg; #caption; #cursor; #model = null;

  constructor(figure) {
    this.#svg = s('svg', { 'aria-hidden': 'true', focusable: 'false' });
    this.#area = h('div', { class: 'area strip', 'aria-describedby': `${figure.id}-caption` }, this.#svg);
    this.#note = h('p', { class: 'note' });
    this.#caption = h('figcaption', { id: `${figure.id}-caption` });
    figure.setAttribute('aria-labelledby', `${figure.id}-title`);
    update(figure, h('div', { class: 'plot-head' }, h('h3', { id: `${figure.id}-title` }, 'Verdict'), this.#caption, this.#note), this.#area);
    this.#cursor = new Cursor(this.#area, 'Verdict, the last hour, point by point', () => this.#render(), (i) => this.#describe(i));
    new ResizeObserver(() => this.#render()).observe(this.#area);
  }

  // show takes { from, to, window, step, times, verdicts, now }; now is the
  // verdict at to.
  show(model) {
    this.#model = model;
    this.#render();
  }

  #render() {
    const width = this.#area.clientWidth;
    const height = this.#area.clientHeight - margin.bottom;
    if (!this.#model || width === 0) return;
    const { from, to, times } = this.#model;
    const x = (t) => margin.left + (t - from) / (to - from) * (width - margin.left - margin.right);
    this.#cursor.follow(times, x);
    this.#svg.setAttribute('viewBox', `0 0 ${width} ${height + margin.bottom}`);
    const index = this.#cursor.index;
    update(this.#svg, s('path', { class: 'grid', d: `M0 ${height}H${width}` }),
      this.runs().map((run) => s('rect', {
        class: `run ${run.verdict}`, x: x(run.from), width: Math.max(1, x(run.to) - x(run.from)),
        y: height * (1 - heights[run.verdict]), height: height * heights[run.verdict],
      })),
      timeTicks(from, to, width).map((t) => s('text', { class: 'tick x', x: Math.min(Math.max(x(t), 20), width - 20), y: height + 16, 'text-anchor': 'middle' }, hourMinute(t))),
      index !== null && s('path', { class: 'cursor', d: `M${x(times[index])} 0V${height}` }));
    text(this.#note, index === null ? '' : this.#describe(index));
    text(this.#caption, this.#summary());
  }

  // runs are the stretches of one verdict. A point holds for one step, and the
  // present verdict is the end of the strip.
  runs() {
    const { times, verdicts, step, from, to, now } = this.#model;
    const runs = [];
    const add = (t, verdict) => {
      const last = runs.at(-1);
      if (last && last.verdict === verdict && t - last.to <= (breakAfter - 1) * step) last.to = Math.min(t + step, to);
      else runs.push({ verdict, from: Math.max(t, from), to: Math.min(t + step, to) });
    };
    times.forEach((t, i) => add(t, verdicts[i]));
    add(to, now);
    return runs;
  }

  #summary() {
    const { times, from: begin, to: end, window, step } = this.#model;
    if (times.length === 0) return 'no point yet';
    const runs = this.runs();
    const { verdict, from, to } = runs.at(-1);
    const isWhole = end - begin >= window;
    if (runs.length === 1) {
      return isWhole && from <= begin + breakAfter * step ? `${verdict} for the whole hour` : `${verdict} since ${hourMinute(from)}, the first point`;
    }
    const total = (v) => runs.filter((r) => r.verdict === v).reduce((sum, r) => sum + r.to - r.from, 0);
    const bad = ['critical', 'unknown', 'warning'].filter((v) => total(v) > 0).map((v) => `${v} ${span(total(v) / 1000)}`);
    const isNew = runs.at(-2).verdict !== verdict; // else points are missing between
    const present = from === to ? `${verdict} ${isNew ? 'just now' : 'now'}` : `${verdict} since ${hourMinute(from)} (${span((to - from) / 1000)})`;
    const past = isWhole ? 'in the last hour' : `since ${hourMinute(times[0])}`;
    if (bad.length === 0 && from === to) return `${present}; ok before`;
    return `${present}; ${past} ${bad.join(', ') || 'ok, with gaps'}`;
  }

  #describe(index) { return `${clock(this.#model.times[index])} ${this.#model.verdicts[index]}`; }
}
