// Numbers, sizes and times as text. What is not known is a dash.

export const unknown = '–';

const known = (n) => n !== undefined && n !== null && Number.isFinite(n);

// digits gives three significant digits, never an exponent.
function digits(n) {
  const size = Math.abs(n);
  const decimals = size === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return n.toFixed(decimals);
}

const binary = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

export function bytes(n) {
  if (!known(n)) return unknown;
  let power = 0;
  let value = n;
  while (Math.abs(value) >= 1023.5 && power < binary.length - 1) {
    value /= 1024;
    power++;
  }
  return `${power === 0 ? Math.round(value) : digits(value)} ${binary[power]}`;
}

const thousands = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (n) => known(n) ? thousands.format(n) : unknown;

export function rate(n) {
  if (!known(n)) return unknown;
  return `${n === 0 || n >= 99.95 ? count(n) : digits(n)}/s`;
}

// latency takes seconds.
export function latency(seconds) {
  if (!known(seconds)) return unknown;
  if (seconds < 0.9995) return `${digits(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${digits(seconds)} s`;
  return span(seconds);
}

// span takes seconds and gives the two largest units, cut off as in the texts of
// the server: both show the same number.
export function span(seconds) {
  if (!known(seconds)) return unknown;
  let rest = Math.max(0, Math.floor(seconds));
  const parts = [];
  for (const [unit, size] of [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]]) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) parts.push(`${n} ${unit}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.join(' ') || '0 s';
}

const time = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const minute = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

export const hourMinute = (ms) => minute.format(ms);

// clock gives the time of day, with the date if that is not the day of now.
export function clock(ms, now = ms) {
  if (!ms) return 'never';
  const text = time.format(ms);
  return day.format(ms) === day.format(now) ? text : `${day.format(ms)} ${text}`;
}

// since gives a time and how long ago that is.
export function since(ms, now) {
  return ms ? `${clock(ms, now)} (${span((now - ms) / 1000)})` : unknown;
}
