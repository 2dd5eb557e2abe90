// Which lines the plots show.

import { Plot } from './plot.js';
import { Strip } from './strip.js';
import { slotKey } from './history.js';
import { bytes, latency, rate } from './format.js';
import { bytesScale, logScale, rateScale } from './scale.js';

const figure = (id) => document.getElementById(id);

const strip = new Strip(figure('plot-verdict'));
const retained = new Plot(figure('plot-retained'), { title: 'Retained WAL', axis: 'bytes', scale: bytesScale, format: bytes });
const lag = new Plot(figure('plot-lag'), { title: 'Confirmed lag', axis: 'bytes', scale: bytesScale, format: bytes });
const throughput = new Plot(figure('plot-rate'), { title: 'Throughput', axis: 'acknowledged events per second', scale: rateScale, format: rate });
const delay = new Plot(figure('plot-latency'), { title: 'Latency, p99', absent: 'nothing acknowledged', lead: true, axis: 'time from commit to acknowledgement, logarithmic', scale: logScale, format: latency });

// styles are the lines that can be told apart, by colour and by dashes.
const styles = ['s0', 's1', 's2', 's3', 's4'];

// worn is which slot has which style: a slot keeps its own while it is shown.
const worn = new Map();

function dress(keys) {
  for (const key of [...worn.keys()]) if (!keys.includes(key)) worn.delete(key);
  for (const key of keys) {
    if (!worn.has(key)) worn.set(key, styles.find((style) => ![...worn.values()].includes(style)));
  }
}

export function showPlots(now, history) {
  const to = Math.max(now.now_ms, history.points.at(-1)?.at ?? 0);
  const model = { from: history.from(to), to, window: history.window, step: history.step, times: history.times, limits: [], rest: 0, note: '' };
  strip.show({ ...model, verdicts: history.points.map((p) => p.verdict), now: now.verdict });
  showSlots(now, history, model);
  for (const id of ['plot-rate', 'plot-latency']) figure(id).hidden = !now.publisher;
  figure('plots').dataset.plots = now.publisher ? 4 : 2;
  if (!now.publisher) return;
  const line = (name, style, of) => ({ name, style, values: history.values(of) });
  throughput.show({ ...model, lines: [line('events', 's0', (p) => p.rate)], note: 'events acknowledged by Kafka' });
  delay.show({ ...model, lines: [line('p99', 's1', (p) => p.p99), line('p50', 's0', (p) => p.p50)], note: 'commit to acknowledgement' });
}

// showSlots gives lines of their own to the slots that come first in the list,
// worst first, of those that have a number now; the others are background. What
// is now comes from the answer that the table shows: the last point is older.
function showSlots(now, history, model) {
  const several = now.servers.length > 1;
  const known = history.keys;
  const all = now.slots.map((s) => ({
    key: slotKey(s.server, s.slot), name: several ? `${s.slot} on ${s.server}` : s.slot, present: s.fresh && s.retained !== undefined, slot: s,
  })).filter((s) => s.present || known.has(s.key))
    .sort((a, b) => b.present - a.present);
  const shown = all.slice(0, styles.length);
  dress(shown.map((s) => s.key));
  const rest = all.slice(styles.length);
  const lines = (of) => [...shown, ...rest].map((s) => ({
    name: s.name, style: worn.get(s.key), now: s.slot.fresh ? of(s.slot) ?? null : null, values: history.values((p) => p.slots.has(s.key) ? of(p.slots.get(s.key)) : null),
  }));
  const note = (text) => all.length > 1 ? `largest of ${all.length + history.hidden} slots` : text;
  const drawn = { ...model, rest: rest.length + history.hidden };
  const retainedLines = lines((v) => v.retained);
  retained.show({ ...drawn, lines: retainedLines, limits: limits(now, retainedLines), note: note('since restart_lsn') });
  lag.show({ ...drawn, lines: lines((v) => v.lag), note: note('since confirmed_flush_lsn') });
}

// limits are drawn when something has come near: a line far above would flatten
// everything else.
function limits(now, lines) {
  const highest = Math.max(0, ...lines.flatMap((l) => l.values).filter((v) => v !== null));
  const keep = new Map();
  for (const s of now.servers) {
    const size = s.max_slot_wal_keep_size;
    if (size > 0 && highest >= size / 4) keep.set(size, [...(keep.get(size) ?? []), s.name]);
  }
  return [...keep].map(([value, servers]) => ({
    value, label: `lost beyond ${bytes(value)}` + (now.servers.length > 1 ? ` (${servers.join(', ')})` : ''),
  }));
}
