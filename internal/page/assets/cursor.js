// The cursor of a plot: a moment that is read out, chosen by pointer or keys.
// To assistive technology the plot is a slider over its points.

const keys = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -30, PageUp: 30, Home: -Infinity, End: Infinity };

export class Cursor {
  #element; #moved; #describe; #times = []; #x = () => 0;
  #at = null; // the time that is read out, null: the newest

  // moved is called when the cursor has moved; describe says in words what is
  // at an index.
  constructor(element, label, moved, describe) {
    this.#element = element;
    this.#moved = moved;
    this.#describe = describe;
    for (const [name, value] of Object.entries({ role: 'slider', tabindex: 0, 'aria-label': label, 'aria-valuemin': 0 })) {
      element.setAttribute(name, value);
    }
    element.addEventListener('pointermove', (e) => this.#point(e));
    element.addEventListener('pointerdown', (e) => this.#point(e));
    element.addEventListener('pointerleave', () => this.#set(null));
    element.addEventListener('keydown', (e) => this.#key(e));
    element.addEventListener('focus', () => this.#say());
    element.addEventListener('blur', () => this.#set(null));
  }

  // follow takes new points; x gives the place of a time within the element.
  // What a screen reader is on is left alone: new data is no announcement.
  follow(times, x) {
    this.#times = times;
    this.#x = x;
    if (document.activeElement !== this.#element) this.#say();
  }

  // index is the point that is read out, null when nothing is chosen.
  get index() {
    if (this.#at === null || this.#times.length === 0) return null;
    return this.#nearest((t) => Math.abs(t - this.#at));
  }

  #nearest(distance) {
    let best = 0;
    this.#times.forEach((t, i) => {
      if (distance(t) < distance(this.#times[best])) best = i;
    });
    return best;
  }

  #point(event) {
    if (this.#times.length === 0) return;
    const place = event.clientX - this.#element.getBoundingClientRect().left;
    this.#set(this.#times[this.#nearest((t) => Math.abs(this.#x(t) - place))]);
  }

  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === 'Escape') return this.#set(null);
    const by = keys[event.key];
    if (by === undefined || this.#times.length === 0) return;
    event.preventDefault();
    const last = this.#times.length - 1;
    this.#set(this.#times[Math.min(last, Math.max(0, (this.index ?? last) + by))]);
  }

  #set(at) {
    if (at === this.#at) return;
    this.#at = at;
    this.#say();
    this.#moved();
  }

  #say() {
    const last = Math.max(0, this.#times.length - 1);
    const index = this.index ?? last;
    this.#element.setAttribute('aria-valuemax', last);
    this.#element.setAttribute('aria-valuenow', index);
    this.#element.setAttribute('aria-valuetext', this.#times.length ? this.#describe(index) : 'no point yet');
  }
}
