// The script of the inspector's page, as text. The page loads it without a build step. The script inserts all text from
// a session as text (`textContent`), never as markup.
//
//   entries ─▶ facts at an entry ─▶ tree         Lists have rows of equal height, and only visible rows
//           └▶ blocks of the lanes ─▶ canvas     are in the document.

import { axisScript } from './page-axis.ts';
import { chartScript } from './page-chart.ts';

export const pageScript = String.raw`'use strict';
const base = document.body.dataset.base;
const $ = (id) => document.getElementById(id);
const given = new URLSearchParams(location.hash.slice(1));
const token = given.get('token') ?? '';
const ROW = 24, LANE = 20, HEAD = 22, NAMES = 110, POLL_MS = 700, LIST_POLLS = 8, SHOW_MS = 1000, CHECKPOINT = 5000;

const state = {
  session: given.get('session'), entries: [], checkpoints: [], at: Number(given.get('entry')) || 0,
  isLive: !given.get('entry'), isBehind: false, epoch: null, stateFrom: null,
  wanted: given.get('unit') === null ? null : { unit: given.get('unit'), seq: Number(given.get('seq')) },
  chosen: 'session', mayAct: false, charts: {}, placed: {}, own: new Map(), now: 0,
  from: 0, to: 1, fits: true, lanes: new Map(), open: new Map(), spawned: new Map(), asked: 0,
};

async function ask(path, init = {}) {
  const answer = await fetch(base + '/api/' + path, {
    ...init, headers: { ...init.headers, authorization: 'Bearer ' + token },
  }).catch(() => {
    throw new Error('Not connected: the process that has this page does not answer. Trying again. What you see may be old.');
  });
  if (answer.status === 401) throw new Error('The address lacks its secret: open the whole link that was printed, with what follows #token=');
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error?.message ?? 'The inspector does not answer');
  return body;
}
const say = (text) => {
  setText($('status'), text);
  $('status').toggleAttribute('data-wrong', !/^(?:Connect|Loading|There is)/.test(text));
};
const of = (params) => new URLSearchParams(params).toString();

/** Escapes characters that change the text direction, so that a user never approves reordered text. */
const plain = (text) => String(text).replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
  (mark) => '\\u' + mark.charCodeAt(0).toString(16).padStart(4, '0'));
// Text that has not changed is not replaced, because that would clear the user's selection.
const setText = (box, text) => { if (box.textContent !== plain(text)) box.textContent = plain(text); };

function el(name, fields = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(fields))
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key === 'class') made.className = value;
    else if (value !== null) made.setAttribute(key, value);
  made.append(...children.map((child) => typeof child === 'string' ? plain(child) : child));
  return made;
}

// Sessions

async function begin() {
  try {
    const { charts, placed } = await ask('charts');
    Object.assign(state, { charts, placed });
    await poll();
  } catch (error) {
    say(error.message);
    setTimeout(begin, 2000);
  }
}
async function listSessions() {
  const sessions = await ask('sessions');
  $('session').replaceChildren(...sessions.slice(-500).map(({ scope, entries }) =>
    el('option', { value: scope }, scope + ' (' + entries + ')')));
  state.session ??= sessions.at(-1)?.scope ?? null;
  if (state.session !== null) $('session').value = state.session;
}
$('session').addEventListener('change', () => pick($('session').value));
function pick(session) {
  $('fork-id').value = '';
  Object.assign(state, { session, at: 0, isLive: true, chosen: 'session', fits: true, wanted: null });
  forget(null);
  void load();
}
function forget(epoch) {
  Object.assign(state, { epoch, entries: [], checkpoints: [], lanes: new Map(), open: new Map(), spawned: new Map() });
}

let polls = 0;
async function poll() {
  if (!document.hidden) {
    // Does nothing while the user has the list open.
    if (++polls % LIST_POLLS === 0 && document.activeElement !== $('session')) await listSessions().catch((error) => say(error.message));
    await loadMachines().catch((error) => say(error.message));
    await load();
  }
  setTimeout(poll, POLL_MS);
}
let loading = null, shownAt = -Infinity;
function load() {
  loading ??= loadAll().catch((error) => say(error.message)).finally(() => { loading = null; });
  return loading;
}
// Loads are sequential, because parallel loads would receive the same entries.
async function loadAll() { while (await loadOnce()); }
/** Returns whether there are more entries. */
async function loadOnce() {
  if ($('session').options.length === 0) await listSessions();
  const session = state.session;
  document.body.toggleAttribute('data-bare', session === null);
  setText($('empty'), session === null && machines.items.length === 0 ? 'Nothing has happened here yet. A session is shown as soon as it begins; the machines of an app, once its actors have { inspect }.' : '');
  document.body.toggleAttribute('data-empty', session === null && machines.items.length === 0);
  if (session === null) {
    say(machines.items.length > 0 ? 'Connected' : 'There is no session yet');
    return false;
  }
  const got = await ask('entries?' + of({ session, after: state.entries.length }));
  if (session !== state.session) return true;
  if (got.epoch !== state.epoch) {
    const chosen = state.isLive ? null : state.entries[state.at - 1];
    if (chosen) state.wanted = { unit: chosen.unit, seq: chosen.seq };
    const had = state.entries.length;
    forget(got.epoch);
    // The response still belongs to the old list, so load the new list from the start.
    if (had > 0) return true;
  }
  state.stateFrom = got.stateFrom;
  $('dropped').textContent = droppedIn(got);
  state.mayAct = got.mayAct;
  const may = (allowed, why, ...names) => names.forEach((name) => {
    $(name).disabled = !allowed;
    $(name).title = allowed ? '' : why;
  });
  may(got.maySave, 'Words are hidden here, and a test needs them', 'save');
  may(got.mayFork, 'Not allowed here', 'fork', 'fork-id');
  state.now = got.now;
  for (const entry of got.entries) take(entry);
  const isMore = state.entries.length < got.count || got.count < got.kept && got.failure === null;
  say(got.failure ?? (isMore ? 'Loading ' + state.entries.length + ' of ' + got.kept
    : (got.mayAct ? 'Connected: it may act' : 'Connected: it only looks')));
  if (got.entries.length === 0 && !isMore && !state.isBehind) return false;
  const { wanted } = state;
  const found = wanted ? state.entries.findIndex(({ unit, seq }) => unit === wanted.unit && seq === wanted.seq) : -1;
  if (found >= 0) Object.assign(state, { at: found + 1, isLive: false, wanted: null });
  if (state.isLive || state.at === 0) state.at = state.entries.length;
  state.at = Math.min(state.at, state.entries.length);
  if (state.fits) fit();
  // During a long load, the page is updated at intervals.
  state.isBehind = isMore && performance.now() - shownAt < SHOW_MS;
  if (!state.isBehind) {
    show();
    shownAt = performance.now();
  }
  return isMore;
}

/** Says which entries the journal no longer has. */
function droppedIn({ isDropped, stateFrom }) {
  if (!isDropped) return '';
  const kept = 'The journal has dropped the beginning of this session. ';
  if (stateFrom === null) return kept + 'Its entries are here; what they led to is not known before its next snapshot.';
  return kept + (stateFrom === 1 ? 'It goes on from a snapshot.' : 'What entries led to is known from entry ' + stateFrom + ' on, a snapshot.');
}

// Facts

function take(entry) {
  const n = state.entries.push(entry);
  for (const [id, spawned] of Object.entries(entry.spawned ?? {})) state.spawned.set(id, spawned);
  for (const [name, value] of Object.entries(entry.changes)) {
    const before = state.open.get(name);
    if (before) {
      before.to = entry.at;
      state.open.delete(name);
    }
    if (value === null) continue;
    const [lane, kind] = laneOf(name, value);
    if (lane === null) continue;
    const block = { name, kind, from: entry.at, to: null, n };
    if (!state.lanes.has(lane)) state.lanes.set(lane, []);
    state.lanes.get(lane).push(block);
    if (kind === 'word' || kind === 'broken') block.to = entry.at;
    else state.open.set(name, block);
  }
  if (n % CHECKPOINT === 0) state.checkpoints.push(factsAt(n));
}
function laneOf(name, value) {
  const [what, id = ''] = name.split(' ');
  const isBroken = value.endsWith('(broken off)');
  switch (what) {
    case 'floor': return value === 'user' ? ['user', 'speech'] : value === 'model' ? ['lead', 'speech'] : [null, ''];
    case 'user': return ['user', isBroken ? 'broken' : 'word'];
    case 'assistant': return ['lead', isBroken ? 'broken' : 'word'];
    case 'call': return /(?:answered|delivered|cancelled)$/.test(value) ? [null, ''] : ['lead: tools', value.endsWith('settled') ? 'pending' : 'tool'];
    case 'model': return ['lead: model', value.startsWith('failed') ? 'failed' : 'retried'];
    case 'service': return /^(?:invoking|waiting)/.test(value) ? ['services', value.startsWith('i') ? 'running' : 'ready'] : [null, ''];
    case 'question': return ['questions', value.split(':')[0]];
    case 'delivery': return ['deliveries', value.split(/[ ,:]/)[1] ?? 'pending'];
    case 'subagent': return [id, /\b(spawning|ready|running|waiting_for_\w+|completed|failed|cancelled)\b/.exec(value)?.[1] ?? 'running'];
    default: return [null, ''];
  }
}
function factsAt(n) {
  const saved = Math.min(Math.floor(n / CHECKPOINT), state.checkpoints.length);
  const facts = new Map(saved > 0 ? state.checkpoints[saved - 1] : []);
  for (let index = saved * CHECKPOINT; index < n; index += 1)
    for (const [name, value] of Object.entries(state.entries[index].changes))
      if (value === null) facts.delete(name); else facts.set(name, value);
  return facts;
}

// Lists whose rows are in the document only while they are visible

function list(box, role, row) {
  const space = el('div', { class: 'space', role: 'presentation' });
  box.append(space);
  const view = { items: [], selected: -1 };
  const draw = () => {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 5);
    const last = Math.min(view.items.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + 5);
    space.style.height = view.items.length * ROW + 'px';
    const rows = [];
    for (let index = first; index < last; index += 1) {
      const made = row(view.items[index], index);
      made.classList.add('row');
      made.setAttribute('role', role);
      made.title = [...made.children].map((child) => child.textContent).join(' ');
      made.id = box.id + '-' + index;
      made.setAttribute('aria-selected', String(index === view.selected));
      made.style.top = index * ROW + 'px';
      rows.push(made);
    }
    space.replaceChildren(...rows);
    if (view.selected >= first && view.selected < last) box.setAttribute('aria-activedescendant', box.id + '-' + view.selected);
    else box.removeAttribute('aria-activedescendant');
  };
  view.draw = draw;
  view.reveal = () => {
    const top = view.selected * ROW;
    // The box can scroll only within the height of its content.
    space.style.height = view.items.length * ROW + 'px';
    if (view.selected >= 0 && (top < box.scrollTop || top + ROW > box.scrollTop + box.clientHeight))
      box.scrollTop = Math.max(0, top - box.clientHeight / 2);
    draw();
  };
  box.addEventListener('scroll', draw);
  // The row is found by its position, because its element may have been replaced since the button was pressed.
  space.addEventListener('click', (event) => {
    const index = Math.floor((event.clientY - space.getBoundingClientRect().top) / ROW);
    if (index < view.items.length) view.choose(index);
  });
  box.addEventListener('keydown', (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || view.items.length === 0) return;
    event.preventDefault();
    view.choose(Math.max(0, Math.min(view.items.length - 1, view.selected + step)));
  });
  new ResizeObserver(draw).observe(box);
  return view;
}

const tree = list($('tree'), 'treeitem', (item) => {
  const made = el('div', { 'aria-level': item.level + 1, 'aria-setsize': item.of, 'aria-posinset': item.place },
    el('span', {}, item.label), el('span', { class: 'chip' }, item.state));
  made.style.paddingLeft = item.level * 16 + 4 + 'px';
  return made;
});
tree.choose = (index) => choose(tree.items[index].id);
const entries = list($('entries'), 'option', (entry) => el('div', {},
  el('span', { class: 'n' }, String(entry.n)), el('span', {}, clock(entry.at)),
  el('span', {}, entry.actor === entry.unit || entry.unit === state.session ? entry.actor
    : entry.unit.startsWith(state.session + '/') ? entry.unit.slice(state.session.length + 1) : entry.unit),
  el('span', {}, entry.type)));
entries.choose = (index) => go(entries.items[index].n);

// The search results among the entries that have been searched so far
const looked = { key: '', upTo: 0, found: [] };
function foundEntries() {
  const text = $('find').value.trim().toLowerCase(), id = $('only').checked && !state.chosen.startsWith('machine ') ? state.chosen : null;
  if (text === '' && id === null) return state.entries;
  const key = JSON.stringify([text, id, state.session, state.epoch]);
  if (looked.key !== key) Object.assign(looked, { key, upTo: 0, found: [] });
  for (; looked.upTo < state.entries.length; looked.upTo += 1) {
    const entry = state.entries[looked.upTo];
    if ((id === null || concerns(entry, id)) && (text === '' || wordsIn(entry).includes(text))) looked.found.push(entry);
  }
  return looked.found;
}
function concerns({ unit, actor, changes }, id) {
  const at = id.indexOf(' ');
  const what = at < 0 ? id : id.slice(0, at), rest = id.slice(at + 1);
  return Object.hasOwn(changes, id) || (what === 'subagent' ? unit === rest : unit === state.session && actor === (at < 0 ? what : what + ':' + rest));
}
const wordsIn = ({ unit, actor, type, changes }) =>
  (unit + ' ' + actor + ' ' + type + ' ' + Object.entries(changes).flat().join(' ')).toLowerCase();
function listEntries() {
  const found = foundEntries();
  entries.items = found;
  let low = 0, high = found.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (found[middle].n < state.at) low = middle + 1; else high = middle;
  }
  entries.selected = found[low]?.n === state.at ? low : -1;
  entries.reveal();
  $('found').textContent = found === state.entries ? '' : found.length.toLocaleString() + ' of ' + state.entries.length.toLocaleString();
}
$('find').addEventListener('input', listEntries);
$('only').addEventListener('change', listEntries);

const machines = list($('machines'), 'treeitem', (item) => {
  const made = el('div', { 'aria-level': item.level + 1, 'aria-setsize': item.of, 'aria-posinset': item.place },
    el('span', {}, item.name), el('span', { class: 'chip' }, item.state));
  made.style.paddingLeft = item.level * 16 + 4 + 'px';
  return made;
});
machines.choose = (index) => choose('machine ' + machines.items[index].id);
async function loadMachines() {
  const got = await ask('machines');
  const known = new Set(got.map(({ id }) => id)), below = new Map();
  for (const item of got) {
    const parent = item.parentId !== null && known.has(item.parentId) ? item.parentId : null;
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(item);
  }
  const rows = [], walk = (parent, level) => {
    const items = below.get(parent) ?? [];
    for (const [index, item] of items.entries()) {
      rows.push({ ...item, level, of: items.length, place: index + 1 });
      walk(item.id, level + 1);
    }
  };
  walk(null, 0);
  $('own').hidden = rows.length === 0;
  machines.items = rows;
  machines.selected = rows.findIndex(({ id }) => 'machine ' + id === state.chosen);
  if (state.session === null && state.chosen === 'session' && rows.length > 0) return machines.choose(0);
  machines.draw();
  if (state.chosen.startsWith('machine ')) void machineDetail();
}
function choose(id) {
  state.chosen = id;
  machines.selected = machines.items.findIndex((item) => 'machine ' + item.id === id);
  machines.draw();
  show();
  if (id.startsWith('machine ')) void machineDetail();
}

/** The service that a source belongs to. Both names may contain a slash. */
function sourceParent(facts, name) {
  for (let at = name.indexOf('/'); at >= 0; at = name.indexOf('/', at + 1)) {
    const service = 'service ' + name.slice('source '.length, at);
    if (facts.has(service)) return service;
  }
  return 'session';
}
function treeOf(facts) {
  const below = new Map();
  const add = (parent, item) => below.set(parent, [...(below.get(parent) ?? []), item]);
  for (const [name, value] of facts) {
    const [what, id = ''] = name.split(' ');
    if (what === 'subagent') {
      const spawned = state.spawned.get(id);
      const word = laneOf(name, value)[1];
      const parent = spawned?.parentId && facts.has('subagent ' + spawned.parentId) ? 'subagent ' + spawned.parentId : 'session';
      if (!below.has(parent)) below.set(parent, []);
      below.get(parent).push({ id: name, label: (spawned?.name ?? '') + ' ' + id, state: word });
    } else if (what === 'question') {
      const asker = 'subagent ' + id.slice(0, id.lastIndexOf('.'));
      add(facts.has(asker) ? asker : 'session', { id: name, label: name, state: value.split(':')[0] });
    } else if (what === 'delivery') add('outbox', { id: name, label: name, state: value.split(/[ ,:]/)[1] ?? '' });
    else if (what === 'service') add('session', { id: name, label: name, state: value });
    else if (what === 'source') {
      const parent = sourceParent(facts, name);
      const label = parent === 'session' ? name : 'source ' + name.slice(parent.length);
      add(parent, { id: name, label, state: value });
    }
    else if (what === 'call') {
      const at = value.lastIndexOf(' ');
      add('session', { id: name, label: 'call ' + value.slice(0, at) + ' ' + id, state: value.slice(at + 1) });
    }
  }
  const first = [
    { id: 'interaction', label: 'interaction', state: facts.get('owner') ?? '' },
    { id: 'outbox', label: 'outbox', state: (facts.get('reserved') ?? '0') + ' reserved' },
  ];
  below.set('session', [...first, ...(below.get('session') ?? [])]);
  const rows = [{ id: 'session', label: state.session, state: facts.get('connection') ?? 'created', level: 0, of: 1, place: 1 }];
  const walk = (parent, level) => {
    const items = below.get(parent) ?? [];
    for (const [index, item] of items.entries()) {
      rows.push({ ...item, level, of: items.length, place: index + 1 });
      walk(item.id, level + 1);
    }
  };
  walk('session', 1);
  return rows;
}

// One entry

function go(n) {
  const last = state.entries.length;
  if (last === 0) return;
  state.at = Math.max(1, Math.min(last, n));
  state.isLive = state.at === last;
  show();
}
$('first').addEventListener('click', () => go(1));
$('back').addEventListener('click', () => go(state.at - 1));
$('next').addEventListener('click', () => go(state.at + 1));
$('live').addEventListener('click', () => go(state.entries.length));
$('entry').addEventListener('change', () => go(Number($('entry').value) || 1));
$('link').addEventListener('click', (event) => {
  event.preventDefault();
  history.replaceState(null, '', $('link').getAttribute('href'));
  void copy(location.href.replace(/token=[^&]*&?/, ''), 'The link, without its secret');
});
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    setText($('receipt'), what + ' is copied');
  } catch (error) {
    setText($('receipt'), 'Not copied: ' + error.message);
  }
}
$('copy').addEventListener('click', () => void copy($('event').textContent, 'The event'));

$('save').addEventListener('click', async () => {
  try {
    const { name, text } = await ask('test?' + of({ session: state.session, entry: String(state.at) }));
    const href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
    el('a', { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
    setText($('receipt'), 'Saved as ' + name);
  } catch (error) {
    setText($('receipt'), 'Not saved: ' + error.message);
  }
});
$('fork').addEventListener('click', async () => {
  const to = $('fork-id').value || forkId();
  const receipt = await post('fork', { session: state.session, entry: state.at, to });
  if (!receipt?.ok) return;
  pick(to);
  await listSessions().catch((error) => say(error.message));
});
const forkId = () => state.session + '-at-' + state.at;

function show() {
  const { at, entries: all } = state;
  $('fork-id').placeholder = forkId();
  if (at === 0) return;
  $('entry').value = String(at);
  $('entry').max = String(all.length);
  $('of').textContent = 'of ' + all.length;
  $('live').setAttribute('aria-pressed', String(state.isLive));
  $('back').disabled = $('first').disabled = at === 1;
  $('next').disabled = at === all.length;
  const { unit, seq } = all[at - 1];
  $('link').setAttribute('href', '#' + of({ token, session: state.session, entry: String(at), unit, seq: String(seq) }));
  tree.items = treeOf(factsAt(at));
  tree.selected = tree.items.findIndex(({ id }) => id === state.chosen);
  tree.reveal();
  listEntries();
  const before = at > 1 ? factsAt(at - 1) : new Map();
  if (!state.chosen.startsWith('machine ')) $('diff').replaceChildren(...Object.entries(all[at - 1].changes).slice(0, 50).flatMap(([name, value]) => [
    el('dt', {}, name), el('dd', {}, (before.get(name) ?? 'none') + ' → ' + (value ?? 'gone')),
  ]));
  draw();
  void detail();
}

/** "Lead agent: 1,200 tokens, 800 of them cached, cost 0.012; with all subagents 3,400 tokens, cost 0.04" */
function used(usage, id) {
  const words = ({ totalTokens, cachedInputTokens, cost }) => [
    totalTokens.toLocaleString() + ' tokens',
    ...(cachedInputTokens > 0 ? [cachedInputTokens.toLocaleString() + ' of them cached'] : []),
    ...(cost === undefined ? [] : ['cost ' + Number(cost.toPrecision(4)).toLocaleString(undefined, { maximumSignificantDigits: 4 })]),
  ].join(', ');
  if (!usage || usage.whole.totalTokens === 0 && usage.whole.cost === undefined) return '';
  const [own, whole] = [words(usage.own), words(usage.whole)];
  const [of, below] = id === 'session' ? ['Lead agent: ', '; with all subagents '] : ['', '; with those below '];
  return of + own + (own === whole ? '' : below + whole);
}

/** "Budget: 5,000 tokens, 20 steps" */
const BUDGET = { tokens: 'tokens', steps: 'steps', timeMs: 'ms', agents: 'agents', cost: 'cost' };
const budgetOf = (budget) => budget ? 'Budget: ' + Object.entries(budget).map(([name, total]) =>
  name === 'cost' ? 'cost ' + total : total.toLocaleString() + ' ' + BUDGET[name]).join(', ') : '';

async function detail() {
  if (state.chosen.startsWith('machine ')) return;
  const asked = ++state.asked;
  const { at: entry, chosen: id, session } = state;
  setText($('subject'), id);
  $('diff-title').textContent = 'Changed by this entry';
  $('event-title').textContent = 'Event of this entry';
  // Removes the actions for the previously selected subject.
  if (!($('actions').dataset.key ?? '').startsWith(id + ' ')) {
    $('actions').dataset.key = '';
    $('actions').replaceChildren();
  }
  try {
    const got = await ask('at?' + of({ session, entry: String(entry), id }));
    if (asked !== state.asked) return;
    const { wait } = got;
    setText($('why'), state.stateFrom === null || entry < state.stateFrom ? 'Not known: what came before was dropped' : wait ? wait.sentence : got.outcome ? endOf(got.outcome) : got.detail?.state === 'over' ? 'over' : !got.detail && (got.value === null || id.includes(' ')) ? 'not there at this entry' : '');
    $('why').dataset.cause = wait?.cause ?? '';
    setText($('usage'), [used(got.usage, id), budgetOf(got.budget)].filter(Boolean).join('. '));
    $('detail').replaceChildren(...termsOf(got.detail));
    showWaits(got);
    showSaid(got.said);
    showExchanged(got.exchanged);
    const context = got.outcome ?? got.context;
    setText($('context'), context === null ? '' : JSON.stringify(context, null, 2));
    $('context-title').textContent = got.outcome ? 'Outcome' : 'Context';
    setText($('event'), JSON.stringify(got.event, null, 2));
    const changed = Object.hasOwn(state.entries[entry - 1]?.changes ?? {}, id);
    showChart(got.value === null ? null : state.charts[got.chart], got.value, state.placed[got.chart], changed ? [{ event: got.event.type }] : []);
    const acting = state.mayAct && state.isLive;
    const limits = Object.keys(got.budget ?? {});
    const key = id + ' ' + acting + ' ' + (wait?.of ?? '') + ' ' + limits + ' ' + got.mayAnswer;
    if ($('actions').dataset.key !== key) {
      $('actions').dataset.key = key;
      $('actions').replaceChildren(...actions(id, wait, acting, limits, got));
    }
  } catch (error) {
    if (asked === state.asked) setText($('why'), error.message);
  }
}

const endOf = ({ status, error }) => status + (error?.message ? ': ' + error.message : '');

/** The text of a question, what needs approval, and who has answered: names and values, with the text first. */
function termsOf(detail) {
  const rank = ([name]) => (FIRST_TERMS.indexOf(name) + 1) || 99;
  return Object.entries(detail ?? {}).filter(([, value]) => value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0))
    .sort((one, other) => rank(one) - rank(other))
    .flatMap(([name, value]) => [el('dt', {}, TERMS[name] ?? name), el('dd', {}, termOf(name, value))]);
}
function termOf(name, value) {
  if (typeof value === 'number' && /At$/.test(name)) return clock(value);
  if (Array.isArray(value) && value.every((each) => typeof each?.label === 'string'))
    return value.map(({ label: text, description }) => text + (description ? ' (' + description + ')' : '')).join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
const FIRST_TERMS = ['question', 'text', 'task', 'action', 'changed', 'options', 'answer', 'answeredBy', 'state'];
const TERMS = { action: 'what is to be approved', changed: 'approved with', mayDiffer: 'may differ if it lasts', lasts: 'lasts for the', answeredBy: 'answered by', askedAt: 'asked at', answerableBy: 'may be answered by', requestId: 'id',
  subagentName: 'asked by', subagentId: 'of the subagent', dueAt: 'due at', deliveryId: 'id', parentId: 'works for', callId: 'for the call', batchId: 'told with', timeoutMs: 'time to answer in ms' };

function showWaits({ waits, waiting }) {
  const key = JSON.stringify(waits);
  if ($('waits').dataset.key === key) return;
  $('waits').dataset.key = key;
  const shown = waits.slice(0, 20);
  const idOf = ({ of, id }) => of === 'session' ? 'session' : of + ' ' + id;
  const nameOf = (wait) => wait.of === 'subagent' ? label(wait.id) : idOf(wait);
  $('waits').replaceChildren(...shown.map((wait) => el('li', {},
    el('button', { type: 'button', onclick: () => choose(idOf(wait)) }, nameOf(wait)), ' ' + wait.sentence)),
    ...(waiting > shown.length ? [el('li', {}, 'and ' + (waiting - shown.length).toLocaleString() + ' more')] : []));
  $('idle').textContent = waiting === 0 ? 'Nothing waits.' : '';
}
function showSaid(said) {
  $('said-box').hidden = said.length === 0;
  $('said-title').textContent = state.chosen === 'session' ? 'Conversation' : 'What its model has read and written';
  const key = JSON.stringify(said);
  if ($('said').dataset.key === key) return;
  $('said').dataset.key = key;
  $('said').replaceChildren(...said.map(({ role, text }) => el('li', {}, el('b', {}, role), ' ' + text)));
  $('said').scrollTop = $('said').scrollHeight;
}

function showExchanged(lines) {
  $('exchanged-box').hidden = lines.length === 0;
  const key = JSON.stringify(lines);
  if ($('exchanged').dataset.key === key) return;
  $('exchanged').dataset.key = key;
  $('exchanged').replaceChildren(...lines.map(({ role, text }) => el('li', {}, el('b', {}, role), ' ' + text)));
  $('exchanged').scrollTop = $('exchanged').scrollHeight;
}

async function machineDetail() {
  const asked = ++state.asked, id = state.chosen.slice('machine '.length);
  setText($('subject'), id);
  $('actions').dataset.key = '';
  $('actions').replaceChildren();
  $('diff-title').textContent = 'Last transition';
  $('event-title').textContent = 'Latest events';
  try {
    const got = await ask('machine?' + of({ id }));
    if (asked !== state.asked) return;
    setText($('why'), got.status === 'active' ? '' : got.status);
    setText($('usage'), '');
    $('detail').replaceChildren();
    $('said-box').hidden = $('exchanged-box').hidden = true;
    $('diff').replaceChildren(...got.moves.flatMap(({ from, event, to }) => [
      el('dt', {}, event), el('dd', {}, (from || got.name) + ' → ' + (to.join(', ') || 'the same')),
    ]));
    setText($('context'), JSON.stringify(got.output ?? got.error ?? got.context, null, 2));
    setText($('event'), got.events.map(({ at, event }) => new Date(at).toLocaleTimeString() + ' ' + JSON.stringify(event)).join('\n'));
    if (got.chart === null) return showChart(null);
    const own = await ownChart(got.chart);
    if (asked === state.asked) showChart(own.chart, got.value, own.placed, got.moves);
  } catch (error) {
    if (asked === state.asked) setText($('why'), error.message);
  }
}
// Actions, which the page sends as a client's frames

let serial = 0;
const act = (frame) => post('act', { session: state.session, frame: { id: ++serial, ...frame } });
function receiptOf({ ok, value, code, message }) {
  if (!ok) return 'Refused: ' + code + ': ' + message;
  if (value === null || value === undefined) return 'Receipt: done';
  if (value.ok === false && value.error) return 'Refused: ' + value.error.code + ': ' + value.error.message;
  return (value.accepted === false ? 'Refused: ' : 'Receipt: ') + JSON.stringify(value);
}
async function post(path, body) {
  setText($('receipt'), 'Sent');
  let receipt = null;
  try {
    receipt = await ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    setText($('receipt'), receiptOf(receipt));
  } catch (error) {
    setText($('receipt'), 'Not sent: ' + error.message);
  }
  void load();
  return receipt;
}
/** The session refuses text that is not JSON, with a message. */
function jsonIn(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
function actions(id, wait, acting, limits, { detail, mayAnswer }) {
  if (!acting) return state.mayAct ? [el('p', {}, 'To act, go to the latest entry.')] : [];
  const [what, rest = ''] = id.split(' ');
  const button = (label, frame) => el('button', { type: 'button', onclick: () => act(frame()) }, label);
  const words = el('input', { type: 'text', 'aria-label': 'Words', placeholder: 'Words' });
  const text = () => words.value;
  const modes = el('select', { 'aria-label': 'When it is read' },
    el('option', { value: 'steer' }, 'before its next step'),
    el('option', { value: 'queue' }, 'after its work'),
    el('option', { value: 'interrupt' }, 'at once'));
  const changed = el('input', { type: 'text', 'aria-label': 'Arguments', value: JSON.stringify(detail?.action?.input ?? {}) });
  const answer = (label, given) => button(label, () => ({ type: 'answer', requestId: rest, answer: given() }));
  if (what === 'question' && detail?.state === 'answered' && detail.lasts && mayAnswer) return [answer('Ask again from now on', () => ({ approved: false }))];
  if (what === 'question' && wait && !mayAnswer) return [el('p', {}, 'Only ' + (detail?.answerableBy?.join?.(' or ') ?? 'another person') + ' can answer this.')];
  if (what === 'question' && wait) return detail?.kind === 'approval' ? [
    answer('Approve', () => ({ approved: true })), answer('Decline', () => ({ approved: false })),
    ...(detail?.mayDiffer === false ? [] : [answer('Approve in this session', () => ({ approved: true, lasts: 'session' }))]),
    changed, button('Approve with these arguments', () => ({ type: 'answer', requestId: rest, answer: { approved: true, input: jsonIn(changed.value) } })),
  ] : [
    words, answer('Answer', () => ({ text: text() })),
    ...(Array.isArray(detail?.options) ? detail.options : []).filter((option) => typeof option?.id === 'string').slice(0, 12)
      .map((option) => answer('Choose ' + option.label, () => ({ optionId: option.id }))),
  ];
  if (what === 'subagent' && wait) return [
    words, modes, button('Send message', () => ({ type: 'message', subagentId: rest, text: text(), mode: modes.value })),
    button('Cancel subagent', () => ({ type: 'cancel', subagentId: rest, reason: 'cancelled in the inspector' })),
    ...(limits.length > 0 ? raising(rest, limits, button) : []),
  ];
  if (what === 'delivery' && wait) return [button('Dismiss', () => ({ type: 'dismiss', deliveryId: rest }))];
  if (what === 'session' && wait) return [
    words, button('Say as the user', () => ({ type: 'send', text: text() })),
    ...(limits.length > 0 ? raising(null, limits, button) : []),
  ];
  return [];
}

function raising(subagentId, limits, button) {
  const total = el('input', { type: 'number', min: '0', step: 'any', 'aria-label': 'New total of the limit', placeholder: 'New total' });
  const limit = el('select', { 'aria-label': 'Limit of its budget' },
    ...limits.map((name) => el('option', { value: name }, name === 'timeMs' ? 'time in ms' : name)));
  return [limit, total, button('Raise budget', () => ({ type: 'raise', subagentId, limits: { [limit.value]: Number(total.value) } }))];
}

${chartScript}${axisScript}
addEventListener('hashchange', () => location.reload());
void begin();
`;
