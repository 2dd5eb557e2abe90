// The page: asks, shows, and says so when there is no answer.

import { text } from './dom.js';
import { clock } from './format.js';
import { drawShape, show } from './verdict.js';
import { showCards } from './cards.js';
import { showPlots } from './plots.js';
import { History } from './history.js';

const base = new URL('.', import.meta.url);

// patience is how long an answer may take. With a poll every 5 s the page says
// within 8 s that there is none.
const patience = 3000;

const history = new History();
let now = null; // the newest answer of /page/now
let poll = 5000;
let answeredAt = Date.now(); // when it came, by the clock of this browser
let failed = false; // the last poll had no answer
let timers = [];

async function ask(path) {
  const response = await fetch(new URL(path, base), { cache: 'no-store', signal: AbortSignal.timeout(patience) });
  if (!response.ok) throw new Error(`${response.status}`);
  return response.json();
}

async function askNow() {
  try {
    const answer = await ask('now');
    // Another version answers: its scripts are others too.
    if (now && now.version !== answer.version) return location.reload();
    now = answer;
    poll = answer.poll_ms;
    answeredAt = Date.now();
    failed = false;
    showCards(now);
    showPlots(now, history);
  } catch (error) {
    failed = true;
    console.warn(`cdcpub does not answer: ${error}`);
  }
  judge();
}

async function askHistory() {
  try {
    history.apply(await ask(`history?since=${encodeURIComponent(history.cursor)}`));
  } catch (error) {
    console.warn(`cdcpub does not tell its history: ${error}`);
    return; // the other poll says on the page that there is no answer
  }
  if (now) showPlots(now, history);
}

// judge decides what the page may claim. An answer that is older than a poll
// and our patience is old even if no poll has failed: the page was hidden, or
// this computer slept. So is one from the future: a clock was set back.
function judge() {
  const age = Date.now() - answeredAt;
  const old = failed || age < 0 || age > poll + patience;
  const banner = document.getElementById('stale');
  banner.hidden = !old;
  document.documentElement.toggleAttribute('data-stale', old);
  const last = now && `the last verdict, at ${clock(now.now_ms)}, was ${now.verdict}`;
  if (failed) {
    text(banner, now ? `No answer since ${clock(now.now_ms)}. What is below is old.` : 'No answer since this page was opened.');
    show('lost', last ?? 'is cdcpub running, and can this computer reach it?');
  } else if (old) {
    text(banner, now ? `Asking again. What is below is of ${clock(now.now_ms)}.` : 'Asking.');
    show('waiting', last ?? 'for the first answer of the server');
  } else if (now) {
    show(now.verdict, now.headline);
    text(document.getElementById('where'), where());
    text(document.getElementById('answered'), clock(now.now_ms));
  }
}

function where() {
  return now.servers.length === 1 ? now.servers[0].name : now.servers.length > 1 ? `${now.servers.length} servers` : '';
}

// repeat calls an async function again and again, each time after it is done,
// until follow begins anew.
function repeat(wait, work) {
  const next = async () => {
    await work();
    if (timers.includes(timer)) timer.id = setTimeout(next, wait());
  };
  const timer = { id: 0 };
  timers.push(timer);
  next();
}

// follow runs while somebody can look, and catches up after.
async function follow() {
  for (const { id } of timers) clearTimeout(id);
  timers = [];
  if (document.hidden) return;
  judge();
  repeat(() => Math.min(1000, poll), async () => judge());
  repeat(() => poll, askNow);
  repeat(() => 2 * poll, askHistory);
}

drawShape(document.getElementById('shape'), 'waiting');
document.addEventListener('visibilitychange', follow);
window.addEventListener('offline', askNow);
window.addEventListener('online', askNow);
follow();
