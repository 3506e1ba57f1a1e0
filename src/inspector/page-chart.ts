// The part of the page's script that draws statecharts: Offstage's charts with their layout, an app's charts that elkjs
// lays out, and nested boxes for charts without a layout.

export const chartScript = String.raw`// A chart of an app is placed once, by elkjs, which is loaded for it.
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
    const missing = () => failed(new Error('npm install elkjs'));
    script.addEventListener('load', () => typeof ELK === 'undefined'
      ? missing()
      : done(new ELK({ workerUrl: base + '/elk-worker.js', algorithms: ['layered'] })));
    script.addEventListener('error', missing);
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
  made.append(...children.map((child) => typeof child === 'string' ? plain(child) : child));
  return made;
}
// Offstage's charts contain each line as text, while elkjs returns it as points.
const lineOf = ({ sections = [] }) => sections.flatMap(({ startPoint, bendPoints = [], endPoint }) =>
  [startPoint, ...bendPoints, endPoint]).map(({ x, y }) => x + ' ' + y).join('L');
function picture(root, value, graph, moves, active) {
  const margin = 4, width = graph.width + 2 * margin, height = graph.height + 2 * margin;
  const image = svg('svg', { role: 'img', width, height, viewBox: [-margin, -margin, width, height].join(' '),
    'aria-label': 'Statechart. Active: ' + (active.join(', ') || 'none') },
    svg('defs', {}, svg('marker', { id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: 'userSpaceOnUse', orient: 'auto-start-reverse' },
      svg('path', { d: 'M0 0L8 4L0 8z', class: 'tip' }))));
  // States are numbered as in the graph: a state's child states follow it directly.
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
`;
