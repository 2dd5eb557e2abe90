// A plot: an axis of values, the last hour, lines with gaps, a number to read
// from afar, and the same in words.

import { h, s, text, update } from './dom.js';
import { Cursor } from './cursor.js';
import { clock, hourMinute, unknown } from './format.js';
import { timeTicks } from './scale.js';

const margin = { left: 76, right: 14, top: 12, bottom: 26 };

// A line breaks where a value is missing and where points are too far apart.
const breakAfter = 2.5;

export class Plot {
  #options; #value; #note; #area; #svg; #legend; #caption; #cursor; #model = null;

  // options: title, axis (what the values are), scale and format of values, and
  // absent, which says what it means that there is none. With lead the first
  // line is what the plot is about, else the largest is.
  constructor(figure, options) {
    this.#options = options;
    const id = figure.id;
    this.#value = h('p', { class: 'value' });
    this.#note = h('p', { class: 'note' });
    this.#svg = s('svg', { 'aria-hidden': 'true', focusable: 'false' });
    this.#area = h('div', { class: 'area', 'aria-describedby': `${id}-caption` }, this.#svg);
    this.#legend = h('ul', { class: 'legend' });
    this.#caption = h('figcaption', { id: `${id}-caption` });
    figure.setAttribute('aria-labelledby', `${id}-title`);
    update(figure, h('div', { class: 'plot-head' }, h('h3', { id: `${id}-title` }, options.title), this.#value, this.#note),
      this.#area, this.#legend, this.#caption);
    this.#cursor = new Cursor(this.#area, `${options.title}: ${options.axis}, the last hour, point by point`,
      () => this.#render(), (index) => this.#describe(index));
    new ResizeObserver(() => this.#render()).observe(this.#area);
  }

  // show takes { from, to, step, times, lines, limits, rest, note }. A line is
  // { name, style, values, now }; lines that have no style are drawn as
  // background and counted in rest. now is the present value, null if it is not
  // known; without it the newest point is the present.
  show(model) {
    this.#model = model;
    this.#render();
  }

  #render() {
    const width = this.#area.clientWidth;
    const height = this.#area.clientHeight;
    if (!this.#model || width === 0) return;
    const { from, to, times, lines, limits } = this.#model;
    const values = lines.flatMap(withNow).filter((v) => v !== null).concat(limits.map((l) => l.value));
    const scale = this.#options.scale(Math.min(...values), Math.max(...values), this.#options.format);
    const x = (t) => margin.left + (t - from) / (to - from) * (width - margin.left - margin.right);
    const y = (v) => height - margin.bottom - scale.at(v) * (height - margin.bottom - margin.top);
    this.#cursor.follow(times, x);
    this.#svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    update(this.#svg, this.#axes(scale, x, y, width, height), limits.map((l) => limitLine(l, y(l.value), width)),
      lines.toReversed().map((l) => this.#line(l, x, y)), this.#marks(x, y, height), values.length === 0 && this.#nothing(width, height));
    this.#read();
  }

  #axes(scale, x, y, width, height) {
    const right = width - margin.right;
    return [
      (this.#model.lines.some((l) => withNow(l).some((v) => v !== null)) ? scale.ticks : []).map(({ value, label }) => [
        s('path', { class: 'grid', d: `M${margin.left} ${y(value)}H${right}` }),
        s('text', { class: 'tick y', x: margin.left - 8, y: y(value), dy: '0.35em', 'text-anchor': 'end' }, label),
      ]),
      timeTicks(this.#model.from, this.#model.to, right - margin.left).map((t) => [
        s('path', { class: 'grid', d: `M${x(t)} ${height - margin.bottom}v5` }),
        s('text', { class: 'tick x', x: Math.min(x(t), width - 20), y: height - 6, 'text-anchor': 'middle' }, hourMinute(t)),
      ]),
    ];
  }

  #line(line, x, y) {
    const { times, to, step, lines } = this.#model;
    const { style } = line;
    let path = '';
    let previous = null;
    let start = 0;
    let fill = '';
    const close = (t) => { if (lines.length === 1) fill += `L${x(t).toFixed(1)} ${y(0)}L${x(start).toFixed(1)} ${y(0)}z`; };
    withNow(line).forEach((value, i) => {
      const t = times[i] ?? to;
      const joined = value !== null && previous !== null && t - previous <= breakAfter * step;
      if (previous !== null && !joined) close(previous);
      previous = value === null ? null : t;
      if (value === null) return;
      const place = `${x(t).toFixed(1)} ${y(value).toFixed(1)}`;
      path += joined ? `L${place}` : `M${place}h0.01`;
      fill += joined ? `L${place}` : `M${place}`;
      if (!joined) start = t;
    });
    if (previous !== null) close(previous);
    return [
      lines.length === 1 && s('path', { class: `fill ${style}`, d: fill }),
      s('path', { class: `line ${style ?? 'rest'}`, d: path }),
    ];
  }

  #marks(x, y, height) {
    const { times, lines } = this.#model;
    const index = this.#cursor.index;
    if (index === null) return [];
    return [
      s('path', { class: 'cursor', d: `M${x(times[index])} ${margin.top}V${height - margin.bottom}` }),
      lines.filter((l) => l.style && l.values[index] !== null).map((l) =>
        s('circle', { class: `dot ${l.style}`, cx: x(times[index]), cy: y(l.values[index]), r: 4.5 })),
    ];
  }

  #nothing(width, height) {
    return s('text', { class: 'nothing', x: (width + margin.left) / 2, y: height / 2, 'text-anchor': 'middle' }, this.#empty());
  }

  #empty() { return this.#model.times.length === 0 ? 'no point yet' : 'nothing measured in this hour'; }

  // read fills what is read as text: the number, the legend, the caption.
  #read() {
    const { times, lines, rest, to, step, note } = this.#model;
    const format = this.#options.format;
    const chosen = this.#cursor.index;
    const last = times.length - 1;
    // A newest point that is old is not the present.
    const present = last >= 0 && to - times[last] <= breakAfter * step ? last : null;
    const valueNow = (l) => l.now !== undefined ? l.now : present === null ? null : l.values[present];
    const valueAt = chosen === null ? valueNow : (l) => l.values[chosen];
    const main = largest(this.#leading(), valueAt);
    text(this.#value, main ? format(valueAt(main)) : unknown);
    this.#value.classList.toggle('absent', !main);
    text(this.#note, [chosen === null ? note : `at ${clock(times[chosen])}`, main && this.#leading().length > 1 && main.name].filter(Boolean).join(' · '));
    update(this.#legend, lines.length < 2 ? [] : lines.filter((l) => l.style).map((l) => h('li', {},
      s('svg', { class: 'swatch', viewBox: '0 0 28 10', 'aria-hidden': 'true', focusable: 'false' }, s('path', { class: `line ${l.style}`, d: 'M0 5H28' })),
      h('span', { class: 'name' }, l.name), h('span', { class: 'number' }, format(valueAt(l))))),
    rest > 0 && h('li', { class: 'rest' }, `and ${rest} more, thin`));
    text(this.#caption, this.#summary(valueNow));
  }

  // leading are the lines that the number and the caption speak of.
  #leading() { return this.#options.lead ? this.#model.lines.slice(0, 1) : this.#model.lines; }

  // summary is the plot in one sentence.
  #summary(valueNow) {
    const { times, to } = this.#model;
    const { format, absent = 'not known' } = this.#options;
    const lines = this.#leading();
    const main = largest(lines, valueNow);
    const known = lines.flatMap((l) => withNow(l).map((value, i) => ({ value, at: times[i] ?? to, name: l.name }))).filter((p) => p.value !== null);
    if (known.length === 0) return this.#empty();
    const of = (p) => lines.length > 1 ? ` (${p.name})` : '';
    const lowest = known.reduce((a, b) => b.value < a.value ? b : a);
    const highest = known.reduce((a, b) => b.value >= a.value ? b : a);
    const now = main ? `${format(valueNow(main))}${of(main)}` : absent;
    return `now ${now}, min ${format(lowest.value)}${of(lowest)}, max ${format(highest.value)}${of(highest)} at ${hourMinute(highest.at)}`;
  }

  #describe(index) {
    const { times, lines } = this.#model;
    return `${clock(times[index])}: ` + lines.filter((l) => l.style)
      .map((l) => (lines.length > 1 ? `${l.name} ` : '') + this.#options.format(l.values[index])).join(', ');
  }
}

// withNow gives the values of a line; the present one comes after the points.
const withNow = ({ values, now = null }) => [...values, now];

function largest(lines, of) {
  return lines.filter((l) => l.style && of(l) !== null).reduce((a, b) => a === null || of(b) > of(a) ? b : a, null);
}

function limitLine({ label }, y, width) {
  return [
    s('path', { class: 'limit', d: `M${margin.left} ${y}H${width - margin.right}` }),
    s('text', { class: 'limit-label', x: margin.left + 6, y: y + 16 }, label),
  ];
}
