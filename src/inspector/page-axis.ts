// The part of the page's script that draws the time axis on a canvas. It paints only the visible lanes and blocks.

export const axisScript = String.raw`// The axis

const FIRST_LANES = ['user', 'lead', 'lead: model', 'lead: tools', 'questions', 'deliveries', 'services'];
const COLORS = {
  speech: '#4c8dff', word: '#1f5fd0', broken: '#c2410c', tool: '#7c5cff', queued: '#b58900', presenting: '#d97706', open: '#e8590c',
  parked: '#8a8f98', answered: '#2f9e44', expired: '#8a8f98', withdrawn: '#8a8f98', pending: '#b58900', resting: '#8a8f98',
  offered: '#d97706', playing: '#4c8dff', spawning: '#8a8f98', ready: '#b58900', running: '#2f9e44', waiting_for_input: '#e8590c',
  waiting_for_children: '#7c5cff', sleeping: '#5c7cfa', completed: '#2b8a3e', failed: '#c92a2a', cancelled: '#8a8f98', retried: '#d97706',
};
const THIN = new Set(['queued', 'parked', 'answered', 'expired', 'withdrawn', 'superseded', 'pending', 'resting', 'ready', 'waiting_for_input', 'waiting_for_children', 'sleeping', 'completed', 'failed', 'cancelled']);
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
    // Blocks are sorted by start, so an earlier block may still extend into the view.
    while (low < high) {
      const middle = (low + high) >> 1;
      if (blocks[middle].from < state.from) low = middle + 1; else high = middle;
    }
    const painted = new Map();
    for (let each = Math.max(0, low - 200); each < blocks.length; each += 1) {
      const block = blocks[each];
      if (block.from > state.to) break;
      // A block that has just started is also visible.
      const left = Math.min(width - 2, Math.max(NAMES, x(block.from)));
      const right = Math.max(left + 2, x(block.to ?? endAt()));
      if (right < NAMES) continue;
      const pixel = Math.floor(right);
      // At most one rectangle is drawn for each kind in each column.
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
/** Squeezed text would be unreadable. */
function cutTo(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && g.measureText(text.slice(0, length) + '…').width > width) length -= 1;
  return text.slice(0, length) + '…';
}
function label(lane) {
  const spawned = state.spawned.get(lane);
  return plain(spawned ? spawned.name + ' ' + lane : lane);
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
$('zoom-in').addEventListener('click', () => zoom(0.5));
$('zoom-out').addEventListener('click', () => zoom(2));
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
`;
