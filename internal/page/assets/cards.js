// Everything on the page that is not a plot, from the answer of /page/now.

import { h, text, update } from './dom.js';
import { bytes, clock, count, since, span, unknown } from './format.js';
import { badge } from './verdict.js';
import { breakable, minor, table } from './tables.js';

const content = (id) => document.querySelector(`#${id} .content`);

export function showCards(now) {
  showPublisher(now);
  showAlerts(now);
  showSlots(now);
  showPartitions(now);
  showServers(now);
  text(document.getElementById('version'), `cdcpub ${now.version}`);
}

function showPublisher(now) {
  const section = document.getElementById('publisher');
  const p = now.publisher;
  section.hidden = !p;
  if (!p) return;
  const item = (name, ...value) => h('div', {}, h('dt', {}, name), h('dd', {}, value));
  update(section.querySelector('dl'),
    item('state', `${p.state} since ${since(p.since_ms, now.now_ms)}`),
    item('role', p.role),
    item('ready', badge(p.verdict, p.verdict === 'ok' ? 'yes' : 'no')),
    item('in flight', `${count(p.in_flight_records)} records, ${bytes(p.in_flight_bytes)}${p.window_full ? ', window full' : ''}`),
    item('Kafka', p.kafka_connected === undefined ? 'no session' : p.kafka_connected ? 'connected' : 'not connected'),
    item('confirmed', p.confirmed_lsn ? h('span', { class: 'exact' }, p.confirmed_lsn) : 'nothing yet'),
    p.stall && h('div', { class: 'stall' }, h('dt', {}, p.state === 'standby' ? 'reason' : 'stalled'), h('dd', {}, p.stall.cause, minor(`since ${since(p.stall.since_ms, now.now_ms)}`))));
}

const standings = {
  raised: (a, now) => `alert since ${since(a.since_ms, now.now_ms)}`,
  due: () => 'alert is due',
  said: () => 'the publisher says so itself',
  unseen: (a, now) => 'as last seen: its server gives no new sample' + (a.alert ? `; alert since ${since(a.since_ms, now.now_ms)}` : ''),
  gone: (a, now) => `gone, resolving; alert since ${since(a.since_ms, now.now_ms)}`,
};

function showAlerts(now) {
  document.getElementById('alerts').classList.toggle('calm', now.cards.length + now.failing_sinks.length === 0);
  const several = now.servers.length > 1;
  const place = (a) => [a.slot && `slot ${a.slot}`, a.server && (several || !a.slot) && `server ${a.server}`].filter(Boolean).join(' on ');
  const row = (name, value) => value && [h('dt', {}, name), h('dd', {}, value)];
  const gone = (a) => a.standing === 'gone';
  const behind = (a) => a.alert && !gone(a) && a.alert !== a.severity ? `, still as ${a.alert}` : '';
  const alert = (a) => h('article', { class: `alert ${gone(a) ? 'gone' : a.severity}` },
    h('h3', {}, gone(a) ? badge('ok', 'gone') : badge(a.severity), h('span', { class: 'summary' }, a.summary)),
    h('p', { class: 'minor' }, `${place(a)} · ${standings[a.standing](a, now)}${behind(a)} · `, h('span', { class: 'exact' }, a.id)),
    h('dl', {}, row('cause', a.cause), row('cure', a.cure)),
    !gone(a) && h('p', {}, h('a', { href: a.runbook, target: '_blank', rel: 'noopener noreferrer' }, `runbook: ${a.id}`)));
  const sink = (f) => h('p', { class: 'sink' }, badge('warning'),
    ` alerts do not reach ${f.name}: ${f.error}; last delivered: ${clock(f.sent_ms, now.now_ms)}`);
  update(content('alerts'), now.failing_sinks.map(sink),
    now.cards.length ? h('div', { class: 'alerts' }, now.cards.map(alert)) : h('p', { class: 'none' }, 'No alert is raised or due.'));
}

function showSlots(now) {
  const several = now.servers.length > 1;
  const columns = [
    { name: 'slot', class: several ? 'name' : 'name alone' }, several && { name: 'server', class: 'name' }, { name: 'verdict', class: 'wide' }, { name: 'held by', class: 'free' },
    { name: 'retained WAL', class: 'number' }, { name: 'confirmed lag', class: 'number' }, { name: 'wal_status' },
    { name: 'time left', class: 'reason' },
  ];
  const rows = now.slots.map((s) => ({
    class: s.fresh ? undefined : 'old',
    cells: [
      [breakable(s.slot), ' ', minor([s.ours && (now.publisher ? 'published from here' : 'configured slot'), s.plugin, s.database].filter(Boolean).join(' · '))],
      breakable(s.server),
      [badge(s.verdict), minor(s.verdict === 'ok' ? '' : [s.reason, s.culprit].filter(Boolean).join('; '))],
      held(s), bytes(s.retained), bytes(s.lag), s.wal_status ?? unknown, left(s),
    ],
  }));
  update(content('slots'), rows.length ? table('Slots', columns, rows) : h('p', { class: 'none' }, 'No slot has been seen yet.'));
}

function held(slot) {
  if (slot.missing) return unknown;
  return slot.active ? breakable(slot.holder ?? 'somebody') : h('span', { class: 'nobody' }, 'nobody');
}

// left says how long until the slot is lost and until the disk is full, or why
// that is not known.
function left(slot) {
  if (slot.missing || slot.lost) return unknown;
  const known = (seconds, until) => seconds !== undefined && h('span', { class: 'until' }, h('strong', {}, span(seconds)), ` ${until}`);
  const { seconds_to_lost_unknown: lostWhy, seconds_to_full_unknown: fullWhy } = slot;
  return [
    known(slot.seconds_to_lost, 'to lost'), known(slot.seconds_to_full, 'to full disk'),
    lostWhy === fullWhy ? minor(lostWhy) : [lostWhy && minor(`lost: ${lostWhy}`), fullWhy && minor(`full disk: ${fullWhy}`)],
  ];
}

function showPartitions(now) {
  document.getElementById('partitions').hidden = !now.publisher;
  const columns = [{ name: 'topic', class: 'name' }, { name: 'partition', class: 'number' }, { name: 'queued', class: 'number' },
    { name: 'oldest', class: 'number' }, { name: 'stall', class: 'wide' }];
  const rows = now.partitions.map((p) => ({
    cells: [breakable(p.topic), p.partition < 0 ? unknown : String(p.partition), count(p.queued), span((now.now_ms - p.oldest_ms) / 1000),
      p.stall ? [badge('warning', 'stalled'), minor(p.stall)] : 'none'],
  }));
  const none = now.publisher?.kafka_connected === undefined ? 'There is no session: nothing is sent.' : 'None: everything that was sent is acknowledged.';
  update(content('partitions'),
    rows.length ? table('Partitions with something unacknowledged', columns, rows) : h('p', { class: 'none' }, none),
    now.partitions_hidden > 0 && h('p', { class: 'none' }, `and ${count(now.partitions_hidden)} more, younger`));
}

function showServers(now) {
  const columns = [{ name: 'server', class: 'name' }, { name: 'verdict', class: 'wide' }, { name: 'PostgreSQL' }, { name: 'sampled' },
    { name: 'WAL for slots', class: 'number' }, { name: 'free space', class: 'reason' }];
  const rows = now.servers.map((s) => ({
    class: s.trouble ? 'old' : undefined,
    cells: [
      breakable(s.name), [badge(s.verdict), minor(s.trouble), (s.unseen ?? []).map(minor)],
      (s.version ?? unknown) + (s.in_recovery ? ', standby' : ''),
      s.taken_ms ? [clock(s.taken_ms, now.now_ms), minor(`${span((now.now_ms - s.taken_ms) / 1000)} ago`)] : 'never',
      s.max_slot_wal_keep_size === -1 ? 'no limit' : s.max_slot_wal_keep_size === undefined ? unknown : `up to ${bytes(s.max_slot_wal_keep_size)}`,
      s.free_bytes === undefined ? ['not known', minor(s.free_unknown)] : bytes(s.free_bytes),
    ],
  }));
  update(content('servers'), rows.length ? table('Servers', columns, rows) : h('p', { class: 'none' }, 'No server has been sampled yet.'));
}
