// The verdict: its word, its shape, the title and the icon of the tab, and the
// one announcement for those who listen to the page.

import { h, s, text, update } from './dom.js';

const ring = 'M50 4a46 46 0 1 0 0 92a46 46 0 1 0 0-92zM50 17a33 33 0 1 1 0 66a33 33 0 1 1 0-66z';

// Each verdict has a shape of its own, in a box of 100 by 100.
const shapes = {
  ok: { body: 'M50 4a46 46 0 1 0 0 92a46 46 0 1 0 0-92z', mark: 'M27 52l16 17l31-37' },
  warning: { body: 'M50 5L98 92H2z', mark: 'M50 36v28M50 77v4' },
  critical: { body: 'M31 4h38l27 27v38l-27 27h-38l-27-27v-38z', mark: 'M33 33l34 34M67 33l-34 34' },
  unknown: { body: 'M6 6h88v88h-88z', mark: 'M34 38c0-22 32-22 32 0c0 14-16 11-16 25M50 73v5' },
  lost: { body: ring, mark: 'M24 76L76 24', hollow: true },
  waiting: { body: ring, mark: 'M29 50h4M48 50h4M67 50h4', hollow: true },
};

const words = { ok: 'OK', warning: 'WARNING', critical: 'CRITICAL', unknown: 'UNKNOWN', lost: 'NO ANSWER', waiting: 'WAITING' };

const signs = { ok: '✓', warning: '▲', critical: '✖', unknown: '?', lost: '⚡', waiting: '…' };

// The icon of the tab has its own colours: it stands on the browser's.
const iconColours = { ok: '#0a7d45', warning: '#e09a00', critical: '#d3122f', unknown: '#7a4fc0', lost: '#555d66', waiting: '#888f98' };

export function drawShape(svg, verdict) {
  const { body, mark, hollow } = shapes[verdict];
  update(svg, s('path', { class: 'body', d: body }), s('path', { class: hollow ? 'mark own' : 'mark', d: mark }));
}

// badge is a verdict in a line of text: its shape and its word, or another.
export function badge(verdict, word = verdict) {
  const svg = s('svg', { viewBox: '0 0 100 100', 'aria-hidden': 'true', focusable: 'false' });
  drawShape(svg, verdict);
  return h('span', { class: `badge ${verdict}` }, svg, ` ${word}`);
}

function icon(verdict) {
  const { body, mark, hollow } = shapes[verdict];
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"><path fill="${iconColours[verdict]}" d="${body}"/>` +
    `<path fill="none" stroke="${hollow ? iconColours[verdict] : '#fff'}" stroke-width="12" d="${mark}"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

let shown = 'waiting';
let announced = 'waiting';

// show puts a verdict on the page. Only a change of it is announced, and that
// the page is waiting is none.
export function show(verdict, headline) {
  text(document.getElementById('headline'), headline);
  if (verdict === shown) return;
  shown = verdict;
  document.documentElement.dataset.verdict = verdict;
  text(document.getElementById('word'), words[verdict]);
  drawShape(document.getElementById('shape'), verdict);
  document.title = `${signs[verdict]} ${words[verdict]} · cdcpub`;
  document.querySelector('link[rel=icon]').href = icon(verdict);
  if (verdict === 'waiting' || verdict === announced) return;
  announced = verdict;
  text(document.getElementById('announcement'), `cdcpub: ${words[verdict]}. ${headline}`);
}
