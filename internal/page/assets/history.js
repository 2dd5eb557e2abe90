// The points of the last hour, as the server gave them piece by piece.

export const slotKey = (server, slot) => JSON.stringify([server, slot]);

// shortest is the least that an axis spans.
const shortest = 5 * 60000;

export class History {
  cursor = '';
  step = 10000;
  window = 3600000;
  hidden = 0;
  points = [];

  apply(answer) {
    this.cursor = answer.cursor;
    this.step = answer.step_ms;
    this.window = answer.window_ms;
    this.hidden = answer.hidden;
    if (answer.whole) this.points = [];
    answer.at_ms.forEach((at, i) => {
      // A clock that was set back: what it will come to again is forgotten.
      if (this.points.at(-1)?.at >= at) this.points = this.points.filter((p) => p.at < at);
      const slots = new Map(answer.slots.map((s) => [slotKey(s.server, s.slot), { retained: s.retained[i], lag: s.lag[i] }]));
      this.points.push({ at, verdict: answer.verdict[i], rate: answer.rate[i], p50: answer.p50[i], p99: answer.p99[i], slots });
    });
    const newest = this.points.at(-1)?.at ?? 0;
    this.points = this.points.filter((p) => p.at > newest - this.window);
  }

  // from is where the axis begins that ends at to: an hour before, or at the first
  // point of a younger process, so that its lines have width.
  from(to) {
    const first = this.points[0]?.at ?? to;
    const whole = to - first > this.window - 3 * this.step;
    return whole ? to - this.window : Math.min(first, to - shortest);
  }

  get times() { return this.points.map((p) => p.at); }

  values(of) { return this.points.map((p) => of(p) ?? null); }

  // keys are the slots that have a number anywhere.
  get keys() {
    const all = new Set();
    for (const p of this.points) {
      for (const [key, { retained, lag }] of p.slots) if (retained !== null || lag !== null) all.add(key);
    }
    return all;
  }
}
