// The script of the inspector's page, as text: a page without a build loads it as it stands here. All texts of a
// session are set as text (`textContent`), never as markup.
//
//   entries ─▶ facts at an entry ─▶ tree         Lists have rows of one height, and only those that are seen
//           └▶ blocks of the lanes ─▶ canvas     are in the document.

export const pageScript = String.raw`'use strict';
const base = document.body.dataset.base;
const $ = (id) => document.getElementById(id);
const given = new URLSearchParams(location.hash.slice(1));
const token = given.get('token') ?? '';
const ROW = 24, LANE = 20, HEAD = 22, NAMES = 110, POLL_MS = 700, CHECKPOINT = 5000;

const state = {
  session: given.get('session'), entries: [], checkpoints: [], at: Number(given.get('entry')) || 0,
  isLive: !given.get('entry'), epoch: null, stateFrom: null,
  wanted: given.get('unit') === null ? null : { unit: given.get('unit'), seq: Number(given.get('seq')) },
  chosen: 'session', mayAct: false, charts: {}, placed: {}, own: new Map(), now: 0,
  from: 0, to: 1, fits: true, lanes: new Map(), open: new Map(), born: new Map(), asked: 0,
};

async function ask(path, init = {}) {
  const answer = await fetch(base + '/api/' + path, {
    ...init, headers: { ...init.headers, authorization: 'Bearer ' + token },
  });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error?.message ?? 'The inspector does not answer');
  return body;
}
const say = (text) => { if ($('status').textContent !== text) $('status').textContent = text; };
const of = (params) => new URLSearchParams(params).toString();

function el(name, fields = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(fields))
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key === 'class') made.className = value;
    else if (value !== null) made.setAttribute(key, value);
  made.append(...children);
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
  Object.assign(state, { epoch, entries: [], checkpoints: [], lanes: new Map(), open: new Map(), born: new Map() });
}

async function poll() {
  if (!document.hidden) {
    await loadMachines().catch((error) => say(error.message));
    await load();
  }
  setTimeout(poll, POLL_MS);
}
let loading = null;
function load() {
  loading ??= loadOnce().catch((error) => say(error.message)).finally(() => { loading = null; });
  return loading;
}
async function loadOnce() {
  if ($('session').options.length === 0) await listSessions();
  const session = state.session;
  document.body.toggleAttribute('data-bare', session === null);
  if (session === null) return say(machines.items.length > 0 ? 'Connected' : 'There is no session yet');
  const got = await ask('entries?' + of({ session, after: state.entries.length }));
  if (session !== state.session) return;
  if (got.epoch !== state.epoch) {
    const chosen = state.isLive ? null : state.entries[state.at - 1];
    if (chosen) state.wanted = { unit: chosen.unit, seq: chosen.seq };
    const had = state.entries.length;
    forget(got.epoch);
    // These came after the entries of before.
    if (had > 0) { loading = null; return loadOnce(); }
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
  say(got.failure ?? (state.entries.length < got.count ? 'Loading ' + state.entries.length + ' of ' + got.count
    : (got.mayAct ? 'Connected: it may act' : 'Connected: it only looks')));
  if (got.entries.length === 0) return;
  const { wanted } = state;
  const found = wanted ? state.entries.findIndex(({ unit, seq }) => unit === wanted.unit && seq === wanted.seq) : -1;
  if (found >= 0) Object.assign(state, { at: found + 1, isLive: false, wanted: null });
  if (state.isLive || state.at === 0) state.at = state.entries.length;
  state.at = Math.min(state.at, state.entries.length);
  if (state.fits) fit();
  show();
  if (state.entries.length < got.count) { loading = null; return loadOnce(); }
}

/** A journal does not keep everything for good, and the page does not hide that. */
function droppedIn({ isDropped, stateFrom }) {
  if (!isDropped) return '';
  const kept = 'The journal has dropped the beginning of this session. ';
  if (stateFrom === null) return kept + 'Its entries are here; what they led to is not known before its next snapshot.';
  return kept + (stateFrom === 1 ? 'It goes on from a snapshot.' : 'What entries led to is known from entry ' + stateFrom + ' on, a snapshot.');
}

// Facts

function take(entry) {
  const n = state.entries.push(entry);
  for (const [id, born] of Object.entries(entry.born ?? {})) state.born.set(id, born);
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
    case 'call': return ['lead: tools', 'tool'];
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

// Lists whose rows are in the document only while they are seen

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
    if (view.selected >= 0 && (top < box.scrollTop || top + ROW > box.scrollTop + box.clientHeight))
      box.scrollTop = Math.max(0, top - box.clientHeight / 2);
    draw();
  };
  box.addEventListener('scroll', draw);
  // By its place: the row may be another element since the button went down.
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
  el('span', {}, entry.actor === entry.unit || entry.unit === state.session ? entry.actor : entry.unit),
  el('span', {}, entry.type)));
entries.choose = (index) => go(entries.items[index].n);

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

function treeOf(facts) {
  const below = new Map();
  const add = (parent, item) => below.set(parent, [...(below.get(parent) ?? []), item]);
  for (const [name, value] of facts) {
    const [what, id = ''] = name.split(' ');
    if (what === 'subagent') {
      const born = state.born.get(id);
      const word = laneOf(name, value)[1];
      const parent = born?.parentId && facts.has('subagent ' + born.parentId) ? 'subagent ' + born.parentId : 'session';
      if (!below.has(parent)) below.set(parent, []);
      below.get(parent).push({ id: name, label: (born?.name ?? '') + ' ' + id, state: word });
    } else if (what === 'question') {
      const asker = 'subagent ' + id.slice(0, id.lastIndexOf('.'));
      add(facts.has(asker) ? asker : 'session', { id: name, label: name, state: value.split(':')[0] });
    } else if (what === 'delivery') add('outbox', { id: name, label: name, state: value.split(/[ ,:]/)[1] ?? '' });
    else if (what === 'call') add('session', { id: name, label: name, state: value.split(' ').at(-1) });
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
  state.at = Math.max(1, Math.min(last, n));
  state.isLive = state.at === last;
  show();
}
$('first').addEventListener('click', () => go(1));
$('back').addEventListener('click', () => go(state.at - 1));
$('forth').addEventListener('click', () => go(state.at + 1));
$('live').addEventListener('click', () => go(state.entries.length));
$('entry').addEventListener('change', () => go(Number($('entry').value) || 1));
$('link').addEventListener('click', (event) => {
  event.preventDefault();
  history.replaceState(null, '', $('link').getAttribute('href'));
  void navigator.clipboard?.writeText(location.href.replace(/token=[^&]*&?/, '')).catch(() => {});
});

$('save').addEventListener('click', async () => {
  try {
    const { name, text } = await ask('test?' + of({ session: state.session, entry: String(state.at) }));
    const href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
    el('a', { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
    $('receipt').textContent = 'Saved as ' + name;
  } catch (error) {
    $('receipt').textContent = 'Not saved: ' + error.message;
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
  $('forth').disabled = at === all.length;
  const { unit, seq } = all[at - 1];
  $('link').setAttribute('href', '#' + of({ token, session: state.session, entry: String(at), unit, seq: String(seq) }));
  tree.items = treeOf(factsAt(at));
  tree.selected = tree.items.findIndex(({ id }) => id === state.chosen);
  tree.reveal();
  entries.items = all;
  entries.selected = at - 1;
  entries.reveal();
  const before = at > 1 ? factsAt(at - 1) : new Map();
  if (!state.chosen.startsWith('machine ')) $('diff').replaceChildren(...Object.entries(all[at - 1].changes).slice(0, 50).flatMap(([name, value]) => [
    el('dt', {}, name), el('dd', {}, (before.get(name) ?? 'none') + ' → ' + (value ?? 'gone')),
  ]));
  draw();
  void detail();
}

/** "1,200 tokens, 800 of them cached, cost 0.012; with those below 3,400 tokens, cost 0.04" */
function used(usage) {
  const words = ({ totalTokens, cachedInputTokens, cost }) => [
    totalTokens.toLocaleString() + ' tokens',
    ...(cachedInputTokens > 0 ? [cachedInputTokens.toLocaleString() + ' of them cached'] : []),
    ...(cost === undefined ? [] : ['cost ' + Number(cost.toPrecision(4)).toLocaleString(undefined, { maximumSignificantDigits: 4 })]),
  ].join(', ');
  if (!usage || usage.whole.totalTokens === 0 && usage.whole.cost === undefined) return '';
  if (!usage.own) return 'All subagents: ' + words(usage.whole);
  const [own, whole] = [words(usage.own), words(usage.whole)];
  return own === whole ? own : own + '; with those below ' + whole;
}

/** "Budget: 5,000 tokens, 20 steps" */
const BUDGET = { tokens: 'tokens', steps: 'steps', timeMs: 'ms', agents: 'agents', cost: 'cost' };
const budgetOf = (budget) => budget ? 'Budget: ' + Object.entries(budget).map(([name, total]) =>
  name === 'cost' ? 'cost ' + total : total.toLocaleString() + ' ' + BUDGET[name]).join(', ') : '';

async function detail() {
  if (state.chosen.startsWith('machine ')) return;
  const asked = ++state.asked;
  const { at: entry, chosen: id, session } = state;
  $('subject').textContent = id;
  $('diff-title').textContent = 'Changed by this entry';
  $('event-title').textContent = 'Event of this entry';
  // The actions of what was chosen before are not those of this.
  if (!($('actions').dataset.key ?? '').startsWith(id + ' ')) {
    $('actions').dataset.key = '';
    $('actions').replaceChildren();
  }
  try {
    const got = await ask('at?' + of({ session, entry: String(entry), id }));
    if (asked !== state.asked) return;
    const { wait } = got;
    $('why').textContent = state.stateFrom === null || entry < state.stateFrom ? 'Not known: what came before was dropped' : wait ? wait.sentence : got.outcome ? 'over' : got.value === null ? 'not there at this entry' : '';
    $('why').dataset.cause = wait?.cause ?? '';
    $('usage').textContent = [used(got.usage), budgetOf(got.budget)].filter(Boolean).join('. ');
    $('context').textContent = JSON.stringify(got.outcome ?? got.context, null, 2);
    $('event').textContent = JSON.stringify(got.event, null, 2);
    const changed = Object.hasOwn(state.entries[entry - 1]?.changes ?? {}, id);
    showChart(got.value === null ? null : state.charts[got.chart], got.value, state.placed[got.chart], changed ? [{ event: got.event.type }] : []);
    const acting = state.mayAct && state.isLive;
    const limits = Object.keys(got.budget ?? {});
    const key = id + ' ' + acting + ' ' + (wait?.of ?? '') + ' ' + limits;
    if ($('actions').dataset.key !== key) {
      $('actions').dataset.key = key;
      $('actions').replaceChildren(...actions(id, wait, acting, limits));
    }
  } catch (error) {
    if (asked === state.asked) $('why').textContent = error.message;
  }
}

async function machineDetail() {
  const asked = ++state.asked, id = state.chosen.slice('machine '.length);
  $('subject').textContent = id;
  $('actions').dataset.key = '';
  $('actions').replaceChildren();
  $('diff-title').textContent = 'Last transition';
  $('event-title').textContent = 'Latest events';
  try {
    const got = await ask('machine?' + of({ id }));
    if (asked !== state.asked) return;
    $('why').textContent = got.status === 'active' ? '' : got.status;
    $('usage').textContent = '';
    $('diff').replaceChildren(...got.moves.flatMap(({ from, event, to }) => [
      el('dt', {}, event), el('dd', {}, (from || got.name) + ' → ' + (to.join(', ') || 'the same')),
    ]));
    setText($('context'), JSON.stringify(got.output ?? got.error ?? got.context, null, 2));
    setText($('event'), got.events.map(({ at, event }) => new Date(at).toLocaleTimeString() + ' ' + JSON.stringify(event)).join('\n'));
    if (got.chart === null) return showChart(null);
    const own = await ownChart(got.chart);
    if (asked === state.asked) showChart(own.chart, got.value, own.placed, got.moves);
  } catch (error) {
    if (asked === state.asked) $('why').textContent = error.message;
  }
}
// A selection of the user stays where nothing has changed.
const setText = (box, text) => { if (box.textContent !== text) box.textContent = text; };

// A chart of an app is placed once, by elkjs, which is loaded for it.
async function ownChart(name) {
  const known = state.own.get(name);
  if (known) return known;
  const { chart, graph } = await ask('chart?' + of({ of: name }));
  const own = { chart, placed: null };
  state.own.set(name, own);
  if (graph === null) return own;
  placer().then((elk) => elk.layout(graph)).then(
    (placed) => { own.placed = placed; if (state.chosen.startsWith('machine ')) void machineDetail(); },
    (error) => { own.error = error; $('chart-note').textContent = 'Not placed: ' + (error?.message ?? 'npm install elkjs'); },
  );
  return own;
}
let placing = null;
function placer() {
  placing ??= new Promise((done, failed) => {
    const script = el('script', { src: base + '/elk-api.js' });
    script.addEventListener('load', () => done(new ELK({ workerUrl: base + '/elk-worker.js', algorithms: ['layered'] })));
    script.addEventListener('error', () => failed(new Error('npm install elkjs')));
    document.head.append(script);
  });
  return placing;
}

// The statechart

const within = (node, here, key) => {
  if (here === null) return null;
  if (node.type === 'parallel') return Object.hasOwn(Object(here), key) ? here[key] : {};
  if (here === key) return {};
  return typeof here === 'object' && Object.hasOwn(here, key) ? here[key] : null;
};
function showChart(root, value, placed, moves = []) {
  const key = JSON.stringify([state.chosen, root?.key, value, Boolean(placed), moves]);
  if ($('chart').dataset.key === key) return;
  const isSame = $('chart').dataset.of === state.chosen;
  const { scrollLeft, scrollTop } = $('chart');
  $('chart').dataset.key = key;
  $('chart').dataset.of = state.chosen;
  $('chart-note').textContent = '';
  $('chart').replaceChildren();
  $('moves').replaceChildren();
  if (!root) return;
  const taken = [], active = [];
  const walk = (node, here) => {
    if (here === null) return;
    if (node !== root) active.push(node.key);
    for (const { event, to } of node.on) taken.push(node.key + ': ' + event + (to.length > 0 ? ' → ' + to.join(', ') : ''));
    for (const child of node.states) walk(child, within(node, here, child.key));
  };
  walk(root, value);
  $('chart').replaceChildren(placed ? picture(root, value, placed, moves, active) : boxes(root, value));
  $('moves').replaceChildren(...taken.slice(0, 60).map((text) => el('li', {}, text)));
  if (isSame) $('chart').scrollTo(scrollLeft, scrollTop);
  const on = [...$('chart').querySelectorAll('.state[data-on]')].at(-1);
  const shown = on?.getBoundingClientRect(), box = $('chart').getBoundingClientRect();
  if (shown && (shown.left < box.left || shown.right > box.right || shown.top < box.top || shown.bottom > box.bottom))
    $('chart').scrollBy(shown.left + shown.width / 2 - box.left - box.width / 2, shown.top + shown.height / 2 - box.top - box.height / 2);
}
function boxes(node, here) {
  return el('div', { class: 'state', 'data-type': node.type, 'data-on': here === null ? null : '' },
    el('b', {}, node.key), ...node.states.map((child) => boxes(child, within(node, here, child.key))));
}
function svg(name, fields = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(fields)) if (value !== null) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
// The charts of Offstage have their lines as text, those of elkjs have points.
const lineOf = ({ sections = [] }) => sections.flatMap(({ startPoint, bendPoints = [], endPoint }) =>
  [startPoint, ...bendPoints, endPoint]).map(({ x, y }) => x + ' ' + y).join('L');
function picture(root, value, graph, moves, active) {
  const margin = 4, width = graph.width + 2 * margin, height = graph.height + 2 * margin;
  const image = svg('svg', { role: 'img', width, height, viewBox: [-margin, -margin, width, height].join(' '),
    'aria-label': 'Statechart. Active: ' + (active.join(', ') || 'none') },
    svg('defs', {}, svg('marker', { id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: 'userSpaceOnUse', orient: 'auto-start-reverse' },
      svg('path', { d: 'M0 0L8 4L0 8z', class: 'tip' }))));
  // The numbers of states are those of the graph: a state, then its states.
  const paths = [], on = [];
  const draw = (node, box, here, path) => {
    const number = paths.push(path.join('.')) - 1;
    on[number] = here !== null;
    const drawn = svg('g', { class: 'state', 'data-type': node.type, 'data-leaf': node.states.length === 0 ? '' : null, 'data-on': here === null ? null : '' },
      svg('rect', { x: box.x, y: box.y, width: box.width, height: box.height, rx: 5 }),
      svg('text', { x: box.x + 10, y: box.y + 18 }, node.key.length > 40 ? node.key.slice(0, 39) + '…' : node.key));
    image.append(drawn);
    for (const [index, child] of node.states.entries())
      draw(child, box.children[index], within(node, here, child.key), [...path, child.key]);
    for (const dot of (box.children ?? []).slice(node.states.length))
      image.append(svg('circle', { cx: dot.x + 4, cy: dot.y + 4, r: 4, class: 'start' }));
  };
  draw(root, graph.children[0], value, []);
  const numberOf = (id) => Number(id.slice(1));
  const labels = [];
  for (const edge of graph.edges ?? []) {
    const from = paths[numberOf(edge.sources[0])], target = numberOf(edge.targets[0]), to = paths[target];
    const [label] = edge.labels ?? [];
    const events = (label?.text ?? '').split('\n');
    const isLast = moves.some((move) => events.includes(move.event) &&
      (move.from === undefined ? on[target] : move.from === from && (move.to.length === 0 ? from === to : move.to.includes(to))));
    image.append(svg('path', { class: 'arrow', 'data-last': isLast ? '' : null, 'marker-end': 'url(#tip)',
      d: 'M' + (edge.line ?? lineOf(edge)) }));
    if (!label) continue;
    labels.push(svg('text', { class: 'event', 'data-last': isLast ? '' : null },
      ...events.map((text, index) => svg('tspan', { x: label.x, y: label.y + 11 + index * 14 }, text))));
  }
  image.append(...labels);
  return image;
}

// Actions, by the frames of a client

let serial = 0;
const act = (frame) => post('act', { session: state.session, frame: { id: ++serial, ...frame } });
async function post(path, body) {
  $('receipt').textContent = 'Sent';
  let receipt = null;
  try {
    receipt = await ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    $('receipt').textContent = receipt.ok ? 'Receipt: ' + JSON.stringify(receipt.value) : 'Refused: ' + receipt.code + ': ' + receipt.message;
  } catch (error) {
    $('receipt').textContent = 'Not sent: ' + error.message;
  }
  void load();
  return receipt;
}
function actions(id, wait, acting, limits) {
  if (!acting) return state.mayAct ? [el('p', {}, 'To act, go to the latest entry.')] : [];
  const [what, rest = ''] = id.split(' ');
  const button = (label, frame) => el('button', { type: 'button', onclick: () => act(frame()) }, label);
  const words = el('input', { type: 'text', 'aria-label': 'Words' });
  const text = () => words.value;
  const modes = el('select', { 'aria-label': 'When it is read' },
    el('option', { value: 'steer' }, 'before its next step'),
    el('option', { value: 'queue' }, 'after its work'),
    el('option', { value: 'interrupt' }, 'at once'));
  if (what === 'question' && wait) return [
    words, button('Answer', () => ({ type: 'answer', requestId: rest, answer: { text: text() } })),
    button('Approve', () => ({ type: 'answer', requestId: rest, answer: { approved: true } })),
    button('Refuse', () => ({ type: 'answer', requestId: rest, answer: { approved: false } })),
  ];
  if (what === 'subagent' && wait) return [
    words, modes, button('Send message', () => ({ type: 'message', subagentId: rest, text: text(), mode: modes.value })),
    button('Cancel subagent', () => ({ type: 'cancel', subagentId: rest, reason: 'cancelled in the inspector' })),
    ...(limits.length > 0 ? raising(rest, limits, button) : []),
  ];
  if (what === 'delivery' && wait) return [button('Dismiss', () => ({ type: 'dismiss', deliveryId: rest }))];
  if (what === 'session') return [words, button('Say as the user', () => ({ type: 'send', text: text() }))];
  return [];
}

function raising(subagentId, limits, button) {
  const total = el('input', { type: 'number', min: '0', step: 'any', 'aria-label': 'New total of the limit' });
  const limit = el('select', { 'aria-label': 'Limit of its budget' },
    ...limits.map((name) => el('option', { value: name }, name === 'timeMs' ? 'time in ms' : name)));
  return [limit, total, button('Raise budget', () => ({ type: 'raise', subagentId, limits: { [limit.value]: Number(total.value) } }))];
}

// The axis

const FIRST_LANES = ['user', 'lead', 'lead: tools', 'questions', 'deliveries'];
const COLORS = {
  speech: '#4c8dff', word: '#1f5fd0', broken: '#c2410c', tool: '#7c5cff', queued: '#b58900', presenting: '#d97706', open: '#e8590c',
  parked: '#8a8f98', answered: '#2f9e44', expired: '#8a8f98', withdrawn: '#8a8f98', pending: '#b58900', resting: '#8a8f98',
  offered: '#d97706', playing: '#4c8dff', spawning: '#8a8f98', ready: '#b58900', running: '#2f9e44', waiting_for_input: '#e8590c',
  waiting_for_children: '#7c5cff', completed: '#2b8a3e', failed: '#c92a2a', cancelled: '#8a8f98',
};
const THIN = new Set(['queued', 'parked', 'answered', 'expired', 'withdrawn', 'superseded', 'pending', 'resting', 'ready', 'waiting_for_input', 'waiting_for_children', 'completed', 'failed', 'cancelled']);
const canvas = $('axis'), scroll = $('axis-scroll');
const laneNames = () => [...FIRST_LANES.filter((name) => state.lanes.has(name)), ...[...state.lanes.keys()].filter((name) => !FIRST_LANES.includes(name))];
const endAt = () => state.entries.at(-1)?.at ?? 1;
function fit() {
  state.from = state.entries[0]?.at ?? 0;
  state.to = Math.max(endAt(), state.from + 1);
}
const filler = el('div', { role: 'presentation' });
scroll.append(filler);

function draw() {
  const ratio = devicePixelRatio || 1;
  const width = scroll.clientWidth, height = scroll.clientHeight;
  if (width === 0 || state.entries.length === 0) return;
  if (canvas.width !== width * ratio || canvas.height !== height * ratio)
    Object.assign(canvas, { width: width * ratio, height: height * ratio });
  const names = laneNames();
  filler.style.height = Math.max(0, names.length * LANE + HEAD - height) + 'px';
  const style = getComputedStyle(document.documentElement);
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const ink = dark ? '#e9ebee' : '#1c1f24', line = dark ? '#3a404a' : '#c9ced6', paper = dark ? '#16181c' : '#fdfdfc';
  const g = canvas.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.fillStyle = paper;
  g.fillRect(0, 0, width, height);
  g.font = '11px system-ui, sans-serif';
  g.textBaseline = 'middle';
  const span = state.to - state.from;
  const x = (at) => NAMES + ((at - state.from) / span) * (width - NAMES);
  const first = Math.floor(scroll.scrollTop / LANE);
  const last = Math.min(names.length, Math.ceil((scroll.scrollTop + height - HEAD) / LANE));
  for (let index = first; index < last; index += 1) {
    const y = HEAD + index * LANE - scroll.scrollTop;
    const name = names[index];
    const blocks = state.lanes.get(name);
    let low = 0, high = blocks.length;
    // Blocks begin in order; an earlier one may reach into the view.
    while (low < high) {
      const middle = (low + high) >> 1;
      if (blocks[middle].from < state.from) low = middle + 1; else high = middle;
    }
    const painted = new Map();
    for (let each = Math.max(0, low - 200); each < blocks.length; each += 1) {
      const block = blocks[each];
      if (block.from > state.to) break;
      const left = Math.max(NAMES, x(block.from));
      const right = Math.max(left + 2, x(block.to ?? endAt()));
      if (right < NAMES) continue;
      const pixel = Math.floor(right);
      // At most one rectangle for each kind and column.
      if (painted.get(block.kind) === pixel && right - left <= 2) continue;
      painted.set(block.kind, pixel);
      g.fillStyle = COLORS[block.kind] ?? '#8a8f98';
      const thin = THIN.has(block.kind);
      g.fillRect(left, y + (thin ? LANE / 2 - 2 : 3), right - left, thin ? 4 : LANE - 6);
      if (block.kind === 'broken') for (let at = left - 6; at < left + 10; at += 4) g.fillRect(at, y + 3, 1, LANE - 6);
    }
    g.fillStyle = paper;
    g.fillRect(0, y, NAMES - 2, LANE);
    g.fillStyle = ink;
    g.fillText(cutTo(g, label(name), NAMES - 8), 2, y + LANE / 2);
    g.fillStyle = line;
    g.fillRect(0, y + LANE - 1, width, 1);
  }
  g.fillStyle = paper;
  g.fillRect(0, 0, width, HEAD);
  g.fillStyle = ink;
  const ticks = width < 600 ? 2 : 4;
  for (let tick = 0; tick <= ticks; tick += 1) {
    const at = state.from + (span * tick) / ticks;
    g.textAlign = tick === ticks ? 'right' : 'left';
    g.fillText(clock(at), x(at), HEAD / 2);
  }
  g.textAlign = 'left';
  const now = state.entries[state.at - 1];
  if (now && now.at >= state.from && now.at <= state.to) g.fillRect(Math.min(width - 1, x(now.at)), 0, 1, height);
  $('span').textContent = ((state.to - state.from) / 1000).toFixed(1) + ' s';
}
/** A text that is squeezed cannot be read. */
function cutTo(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && g.measureText(text.slice(0, length) + '…').width > width) length -= 1;
  return text.slice(0, length) + '…';
}
function label(lane) {
  const born = state.born.get(lane);
  return born ? born.name + ' ' + lane : lane;
}
function clock(at) {
  const ms = Math.max(0, at - (state.entries[0]?.at ?? at));
  const minutes = Math.floor(ms / 60000);
  return minutes + ':' + ((ms % 60000) / 1000).toFixed(3).padStart(6, '0');
}
function zoom(factor, around = (state.from + state.to) / 2) {
  state.fits = false;
  state.from = around - (around - state.from) * factor;
  state.to = Math.max(state.from + 1, around + (state.to - around) * factor);
  draw();
}
function pan(part) {
  state.fits = false;
  const by = (state.to - state.from) * part;
  state.from += by;
  state.to += by;
  draw();
}
$('closer').addEventListener('click', () => zoom(0.5));
$('wider').addEventListener('click', () => zoom(2));
$('earlier').addEventListener('click', () => pan(-0.5));
$('later').addEventListener('click', () => pan(0.5));
$('all').addEventListener('click', () => { state.fits = true; fit(); draw(); });
scroll.addEventListener('scroll', draw);
new ResizeObserver(draw).observe(scroll);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
canvas.addEventListener('wheel', (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  const box = canvas.getBoundingClientRect();
  const part = (event.clientX - box.left - NAMES) / (box.width - NAMES);
  zoom(event.deltaY > 0 ? 1.25 : 0.8, state.from + (state.to - state.from) * part);
}, { passive: false });
canvas.addEventListener('click', (event) => {
  const box = canvas.getBoundingClientRect();
  const at = state.from + ((event.clientX - box.left - NAMES) / (box.width - NAMES)) * (state.to - state.from);
  const lane = laneNames()[Math.floor((event.clientY - box.top - HEAD + scroll.scrollTop) / LANE)];
  const block = (state.lanes.get(lane) ?? []).findLast(({ from }) => from <= at);
  if (!block) return;
  if (/^(subagent|question|delivery) /.test(block.name)) state.chosen = block.name;
  go(block.n);
});

addEventListener('hashchange', () => location.reload());
void begin();
`;
