// A table that becomes cards where the screen is narrow. The roles are said
// explicitly: a table that is laid out as blocks loses them otherwise.

import { h } from './dom.js';

// table takes columns { name, class } and rows { key, class, cells }; the first
// cell of a row is its header. An undefined column is left out.
export function table(label, columns, rows) {
  const kept = columns.map((c, i) => [c, i]).filter(([c]) => c);
  return h('table', { role: 'table', 'aria-label': label },
    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' },
      kept.map(([c]) => h('th', { role: 'columnheader', scope: 'col', class: c.class }, c.name)))),
    h('tbody', { role: 'rowgroup' }, rows.map((row) => h('tr', { role: 'row', class: row.class },
      kept.map(([c, i], n) => n === 0
        ? h('th', { role: 'rowheader', scope: 'row', class: c.class }, row.cells[i])
        : h('td', { role: 'cell', class: c.class, 'data-label': c.name }, row.cells[i]))))));
}

// breakable is a name that may be broken after its punctuation.
export const breakable = (name) => name.split(/(?<=[/:._@-])/).flatMap((piece, i) => i === 0 ? [piece] : [h('wbr'), piece]);

// reason is a sentence whose dotted names, of settings and of hosts, may be broken
// after a dot.
export const reason = (sentence) => (sentence ?? '').split(/(?<=[a-z]\.)(?=[a-z])/i).flatMap((piece, i) => i === 0 ? [piece] : [h('wbr'), piece]);

// minor is a second, quieter line in a cell.
export const minor = (text) => text ? h('span', { class: 'minor' }, reason(text)) : '';
