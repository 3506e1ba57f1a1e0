// The actors of an app's machines: what the inspector stores about them, which data leaves the process, and their
// charts.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { assign, createActor, createMachine, fromPromise } from 'xstate';
import { redactNothing, redactWords, type Redact } from '../../src/adapters/inspect/shown-value.ts';
import { chartOf, eventName, graphOf, shownMachines } from '../../src/inspector/charts.ts';
import type { ChartState } from '../../src/inspector/charts.ts';
import { laidOutCharts } from '../../src/inspector/laid-out-charts.ts';
import { OwnMachines } from '../../src/inspector/own-machines.ts';
import { mounted } from './support.ts';

const SECRET = 'the words of a user';

const light = createMachine({
  id: 'light',
  initial: 'red',
  context: { words: SECRET, rounds: 0 },
  on: { 'lamp.broken': '.dark' },
  states: {
    red: { on: { next: 'green', say: { actions: assign({ words: SECRET }) } } },
    green: {
      type: 'parallel',
      states: {
        cars: { initial: 'go', states: { go: { on: { slow: 'stop' } }, stop: {} } },
        walkers: { initial: 'stop', states: { stop: {} } },
      },
      on: { next: 'red' },
      after: { 60_000: 'red' },
    },
    dark: { type: 'final' },
  },
});

function watched(redact: Redact = redactWords) {
  const errors: unknown[] = [];
  const machines = new OwnMachines(redact, { now: () => 1_000 }, (error) => errors.push(error));
  return { machines, errors };
}

test("shows a machine's state, last transition, chart and events after two lines of setup", () => {
  const { machines, errors } = watched();
  const actor = createActor(light, { id: 'crossing', inspect: machines.inspect });
  actor.start();
  expect(machines.list()).toEqual([
    { id: 'crossing', name: 'crossing', parentId: null, state: 'red' },
  ]);
  actor.send({ type: 'next' });
  actor.send({ type: 'slow' });
  const shown = machines.at('crossing');
  expect(shown).toMatchObject({
    state: 'green.cars.stop, green.walkers.stop',
    status: 'active',
    value: { green: { cars: 'stop', walkers: 'stop' } },
    context: { rounds: 0 },
    moves: [{ from: 'green.cars.go', event: 'slow', to: ['green.cars.stop'] }],
    events: [{ type: 'slow' }, { type: 'next' }, { type: 'xstate.init' }],
  });
  const chart = machines.chart(shown?.chart ?? '');
  expect(chart?.chart.states.map(({ key }) => key)).toEqual(['red', 'green', 'dark']);
  expect(chart?.chart.states[1]?.on).toContainEqual({ event: 'after 60000 ms', to: ['red'] });
  actor.send({ type: 'lamp.broken' });
  expect(machines.at('crossing')).toMatchObject({ status: 'done', state: 'done' });
  expect(machines.at('elsewhere')).toBeNull();
  expect(machines.chart('elsewhere')).toBeNull();
  expect(errors).toEqual([]);
});

test('shows children under their parents, and only one chart for two actors of the same machine', async () => {
  const { machines } = watched();
  const work = fromPromise(() => Promise.resolve('done'));
  const parent = createMachine({
    id: 'parent',
    invoke: [
      { id: 'left', src: light },
      { id: 'right', src: light },
      { id: 'job', src: work },
    ],
  });
  const actor = createActor(parent, { id: 'p', inspect: machines.inspect }).start();
  await expect.poll(() => machines.at('p/job')?.status).toBe('done');
  expect(machines.list().map(({ id, parentId }) => [id, parentId])).toEqual([
    ['p', null],
    ['p/left', 'p'],
    ['p/right', 'p'],
    ['p/job', 'p'],
  ]);
  expect(machines.at('p/job')).toMatchObject({ chart: null, value: null });
  expect(machines.at('p/left')?.chart).toBe(machines.at('p/right')?.chart);
  expect(machines.at('p/left')?.chart).not.toBe(machines.at('p')?.chart);
  actor.stop();
});

test('OWN-MACHINES-2: sends message text only if the app allows it', () => {
  const all = (redact: Redact): string => {
    const { machines } = watched(redact);
    const actor = createActor(light, { id: 'crossing', inspect: machines.inspect }).start();
    actor.send({ type: 'say', text: SECRET });
    return JSON.stringify([machines.list(), machines.at('crossing')]);
  };
  expect(all(redactWords)).not.toContain(SECRET);
  expect(all(redactNothing)).toContain(SECRET);
});

test('OWN-MACHINES-1, OWN-MACHINES-3: limits its memory use and handles every inspection event', () => {
  const { machines, errors } = watched();
  const actor = createActor(light, { id: 'crossing', inspect: machines.inspect }).start();
  for (let round = 0; round < 1_000; round += 1) actor.send({ type: 'next' });
  expect(machines.at('crossing')?.events).toHaveLength(20);
  for (let index = 0; index < 500; index += 1) {
    const ended = createActor(light, { id: `light ${index}`, inspect: machines.inspect }).start();
    ended.send({ type: 'lamp.broken' });
  }
  const kept = machines.list().map(({ id }) => id);
  expect(kept).toHaveLength(201);
  expect(kept).toEqual(expect.arrayContaining(['crossing', 'light 499', 'light 300']));
  for (const hostile of [
    null,
    {},
    { type: '@xstate.event' },
    { type: '@xstate.event', actorRef: 7 },
  ])
    machines.inspect(hostile as never);
  expect(errors.length).toBeGreaterThan(0);
});

/** The keys of a chart or the boxes of a graph, level by level. */
const shape = (state: ChartState): unknown => state.states.map(shape);
interface Box {
  readonly children?: readonly Box[];
  readonly width?: number;
  readonly x?: number;
}
const boxesOf = (state: ChartState, box: Box | undefined): unknown =>
  state.states.map((child, index) => boxesOf(child, box?.children?.[index]));
const areThere = (state: ChartState, box: Box | undefined): boolean =>
  box !== undefined && state.states.every((child, index) => areThere(child, box.children?.[index]));

test('CHARTS-1: preserves the order of the states in a graph, whatever their names', () => {
  const names = fc.uniqueArray(
    fc.oneof(
      fc.string({ minLength: 1, maxLength: 60 }).filter((name) => !/[.\\#]/.test(name)),
      fc.constantFrom('constructor', 's0', 's1i', 'chart', '<img src=x onerror=alert(1)>'),
    ),
    { minLength: 1, maxLength: 5 },
  );
  fc.assert(
    fc.property(names, names, (outer, inner) => {
      const [first = ''] = inner;
      const machine = createMachine({
        type: 'parallel',
        states: Object.fromEntries(
          outer.map((name) => [
            name,
            {
              initial: first,
              states: Object.fromEntries(inner.map((each) => [each, { on: { [each]: first } }])),
            },
          ]),
        ),
      });
      const chart = chartOf(machine);
      const graph = graphOf(machine);
      expect(areThere(chart, graph?.children?.[0])).toBe(true);
      expect(boxesOf(chart, graph?.children?.[0])).toEqual(shape(chart));
      const ids = JSON.stringify(graph, (key, value: unknown) => (key === 'labels' ? [] : value));
      for (const name of [...outer, ...inner])
        if (name.includes('<')) expect(ids).not.toContain(name);
    }),
    { numRuns: 100 },
  );
});

test('sends every session chart to the page, with a box for each state', async () => {
  const placed = JSON.parse(laidOutCharts) as Record<
    string,
    Box & { edges: readonly { line?: string }[] }
  >;
  for (const [name, machine] of Object.entries(shownMachines)) {
    const graph = placed[name];
    const chart = chartOf(machine);
    expect(areThere(chart, graph?.children?.[0])).toBe(true);
    const all = (box: Box): readonly Box[] => [box, ...(box.children ?? []).flatMap(all)];
    for (const box of (graph?.children ?? []).flatMap(all))
      expect(box).toMatchObject({
        x: expect.any(Number) as number,
        width: expect.any(Number) as number,
      });
    expect(graph?.edges.length).toBe(graphOf(machine)?.edges.length);
    for (const { line } of graph?.edges ?? []) expect(line).toMatch(/^\d+ \d+(?:L\d+ \d+)+$/);
  }
  const { ask } = await mounted({});
  const got = (await (await ask('charts')).json()) as { charts: object; placed: object };
  expect(Object.keys(got.charts)).toEqual(Object.keys(got.placed));
});

test('renders no chart if its image would be too large', () => {
  const states = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`s${index}`, {}]));
  expect(graphOf(createMachine({ initial: 's0', states }))).toBeNull();
});

test("uses readable names for XState's events", () => {
  expect(
    [
      '',
      '*',
      'go',
      'xstate.after.500.light.red',
      'xstate.after.long.light',
      'xstate.done.actor.job',
      'xstate.error.actor.0.light',
      'xstate.done.state.light',
    ].map(eventName),
  ).toEqual([
    'always',
    'any event',
    'go',
    'after 500 ms',
    'after long',
    'done job',
    'error 0.light',
    'done',
  ]);
});

test("INSPECTOR-1: requires the token for the app's own machines and serves elkjs's layout algorithm", async () => {
  const { ask, url, page } = await mounted({});
  createActor(light, { id: 'crossing', inspect: page.inspect }).start();
  for (const path of ['machines', 'machine?id=crossing', 'chart?of=1'])
    expect((await ask(path, { headers: { authorization: 'Bearer no' } })).status).toBe(401);
  expect(await (await ask('machines')).json()).toMatchObject([{ id: 'crossing', state: 'red' }]);
  expect((await ask('machine?id=nobody')).status).toBe(404);
  expect((await ask('chart?of=../../etc/passwd')).status).toBe(404);
  const base = url.slice(0, url.indexOf('#'));
  const worker = await fetch(`${base}/elk-worker.js`);
  expect(worker.headers.get('content-type')).toContain('text/javascript');
  expect(await worker.text()).toContain('elk');
  expect((await fetch(`${base}/elk-other.js`)).status).toBe(401);
});
