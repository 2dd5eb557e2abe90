// Scales: from values to 0..1 upwards, with the ticks of the axis. Without any
// value, low is Infinity and high -Infinity.

const tick = (value, format) => ({ value, label: format(value).replace(/\.0+(?=\D)/, '') });

// linear spans 0 and all values; its ticks are at most five, at multiples of a
// step that step(largest / 4) chooses.
function linear(low, high, format, step) {
  const each = step((high - Math.min(0, low)) / 4);
  const bottom = Math.floor(Math.min(0, low) / each) * each;
  const top = Math.ceil(high / each) * each;
  const ticks = [];
  for (let i = 0; bottom + i * each <= top * 1.0001; i++) ticks.push(tick(bottom + i * each, format));
  return { at: (value) => (value - bottom) / (top - bottom), ticks };
}

// powerOfTwo is the least power of two that is not less: the ticks of bytes are
// then whole numbers of KiB, MiB, GiB.
const powerOfTwo = (n) => 2 ** Math.ceil(Math.log2(n));

// roundDecimal is the least of 1, 2, 5, 10, 20, ... that is not less.
function roundDecimal(n) {
  const unit = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 5, 10].find((m) => m * unit >= n * 0.9999) * unit;
}

export const bytesScale = (low, high, format) => linear(low, Math.max(high, 4096), format, powerOfTwo);

export const rateScale = (low, high, format) => linear(low, Math.max(high, 4), format, roundDecimal);

// logScale has whole decades and labels four of them at most.
export function logScale(low, high, format) {
  const [least, most] = high < 0 ? [1e-3, 1] : [Math.max(low, 1e-4), Math.max(high, 1e-4)];
  const top = Math.ceil(Math.log10(most) - 1e-9);
  const bottom = Math.min(Math.floor(Math.log10(least) + 1e-9), top - 2);
  const every = Math.ceil((top - bottom) / 4);
  const ticks = [];
  for (let power = bottom; power <= top; power += every) ticks.push(tick(10 ** power, format));
  return { at: (value) => (Math.log10(Math.max(value, 10 ** bottom)) - bottom) / (top - bottom), ticks };
}

const minutes = 60000;

// timeTicks are at round times, as dense as the width allows.
export function timeTicks(from, to, width) {
  const wanted = (to - from) / Math.max(3, Math.floor(width / 90));
  const each = [1, 2, 5, 10, 15, 20, 30, 60].map((n) => n * minutes).find((n) => n >= wanted) ?? 60 * minutes;
  const ticks = [];
  for (let t = Math.ceil(from / each) * each; t <= to; t += each) ticks.push(t);
  return ticks;
}
