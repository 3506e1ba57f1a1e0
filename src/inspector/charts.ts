// Statecharts as plain data for a page: nested states, the events between them, and a graph for ELK, which lays it out.
//
// Owns:     the displayed names of events, and the sizes of boxes and labels.
// Does not: lay out charts. `laid-out-charts.ts` contains Offstage's charts with their layout, and the page lays out an
//           app's charts.
//
// Invariants
//   CHARTS-1. At each level, the graph's first boxes are the chart's states, in the same order. Other boxes follow. The
//       ids in the graph contain no state or event names.

import type { AnyStateMachine, AnyStateNode } from 'xstate';
import {
  eventSourceMachine,
  interactionMachine,
  outboxMachine,
  questionMachine,
  serviceMachine,
  sessionMachine,
  subagentMachine,
} from '../machines/index.ts';

/** A state and its child states. */
export interface ChartState {
  readonly key: string;
  readonly type: string;
  readonly states: readonly ChartState[];
  /** The events that the state handles, with each event's target states; none if the state does not change. */
  readonly on: readonly { readonly event: string; readonly to: readonly string[] }[];
}

export type ChartName =
  | 'session'
  | 'interaction'
  | 'outbox'
  | 'question'
  | 'subagent'
  | 'service'
  | 'source';

/** The machines whose states the inspector shows for each session. */
export const shownMachines: Readonly<Record<ChartName, AnyStateMachine>> = {
  session: sessionMachine,
  interaction: interactionMachine,
  outbox: outboxMachine,
  question: questionMachine,
  subagent: subagentMachine,
  service: serviceMachine,
  source: eventSourceMachine,
};

/** Returns the chart of a machine. */
export const chartOf = ({ root }: AnyStateMachine): ChartState => stateOf(root);

function stateOf(node: AnyStateNode): ChartState {
  const on = new Map<string, Set<string>>();
  for (const { eventType, target = [] } of transitionsOf(node)) {
    const event = eventName(eventType);
    const to = on.get(event) ?? new Set();
    for (const each of target) to.add(each.path.join('.'));
    on.set(event, to);
  }
  return {
    key: node.key,
    type: node.type,
    states: childrenOf(node).map(stateOf),
    on: [...on].map(([event, to]) => ({ event, to: [...to] })),
  };
}

const childrenOf = ({ states }: AnyStateNode): readonly AnyStateNode[] => Object.values(states);

const transitionsOf = (node: AnyStateNode) => [
  ...[...node.transitions.values()].flat(),
  ...(node.always ?? []),
];

/** Returns the displayed name of an event: `xstate.after.1000.light.green` becomes `after 1000 ms`. */
export function eventName(type: string): string {
  if (type === '') return 'always';
  if (type === '*') return 'any event';
  const [, kind = '', id = ''] =
    /^xstate\.(after|done\.actor|error\.actor)\.([^]*)$/.exec(type) ?? [];
  if (kind === 'after') {
    const [delay = ''] = id.split('.');
    return /^\d+$/.test(delay) ? `after ${delay} ms` : `after ${delay}`;
  }
  if (kind !== '') return `${kind.slice(0, kind.indexOf('.'))} ${id}`;
  return type.startsWith('xstate.done.state.') ? 'done' : type;
}

/** A box of an ELK graph. */
interface GraphBox {
  readonly id: string;
  readonly width?: number;
  readonly height?: number;
  readonly children?: readonly GraphBox[];
  readonly layoutOptions?: Readonly<Record<string, string>>;
}

/**
 * A graph for ELK's layout algorithms:
 * https://eclipse.dev/elk/documentation/tooldevelopers/graphdatastructure/jsonformat.html
 */
export interface Graph extends GraphBox {
  readonly edges: readonly {
    readonly id: string;
    readonly sources: readonly [string];
    readonly targets: readonly [string];
    readonly labels: readonly {
      readonly text: string;
      readonly width: number;
      readonly height: number;
    }[];
  }[];
}

const CHAR_WIDTH = 6.6;
const BOLD_CHAR_WIDTH = 8;
const LINE_HEIGHT = 14;
const MAX_NAME = 40;
/** The maximum number of event names on one arrow. */
const MAX_EVENTS = 4;
/** A chart with more states or arrows is not laid out. The page shows it as nested boxes. */
const MAX_STATES = 400;
const MAX_ARROWS = 1_500;

const cut = (name: string): string =>
  name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 1)}…` : name;
const widthOf = (text: string): number => Math.ceil(text.length * CHAR_WIDTH);

/** Returns the graph of a machine's chart for the layout algorithm, or null if the chart is too large. */
export function graphOf({ root }: AnyStateMachine): Graph | null {
  const ids = new Map<AnyStateNode, string>();
  const arrows = new Map<string, { from: string; to: string; events: Set<string> }>();
  const name = (node: AnyStateNode): void => {
    ids.set(node, `s${ids.size}`);
    for (const child of childrenOf(node)) name(child);
  };
  name(root);
  const arrow = (from: string, to: string, event: string): void => {
    const known = arrows.get(`${from} ${to}`) ?? { from, to, events: new Set() };
    known.events.add(event);
    arrows.set(`${from} ${to}`, known);
  };
  const boxOf = (node: AnyStateNode): GraphBox => {
    const id = ids.get(node) ?? '';
    for (const { eventType, target = [] } of transitionsOf(node))
      for (const each of target) arrow(id, ids.get(each) ?? id, eventName(eventType));
    const children = childrenOf(node);
    const width = Math.ceil(cut(node.key).length * BOLD_CHAR_WIDTH) + 20;
    if (children.length === 0) return { id, width, height: 28 };
    const initial = node.type === 'parallel' ? undefined : node.initial?.target[0];
    const start = initial ? [{ id: `${id}i`, width: 8, height: 8 }] : [];
    if (initial) arrow(`${id}i`, ids.get(initial) ?? id, '');
    return {
      id,
      children: [...children.map(boxOf), ...start],
      layoutOptions: {
        'elk.padding': '[top=32,left=14,bottom=14,right=14]',
        'elk.nodeSize.constraints': 'MINIMUM_SIZE',
        'elk.nodeSize.minimum': `(${width}, 40)`,
      },
    };
  };
  const box = boxOf(root);
  if (ids.size > MAX_STATES || arrows.size > MAX_ARROWS) return null;
  return {
    id: 'chart',
    children: [box],
    layoutOptions: {
      'elk.algorithm': 'layered',
      'elk.direction': 'DOWN',
      'elk.hierarchyHandling': 'INCLUDE_CHILDREN',
      'elk.json.shapeCoords': 'ROOT',
      'elk.json.edgeCoords': 'ROOT',
      'elk.layered.spacing.nodeNodeBetweenLayers': '24',
      'elk.spacing.edgeLabel': '4',
      'elk.spacing.nodeNode': '24',
    },
    edges: [...arrows.values()].map(({ from, to, events }, index) => {
      const shown = [...events].filter((event) => event !== '').map(cut);
      const lines =
        shown.length > MAX_EVENTS
          ? [...shown.slice(0, MAX_EVENTS - 1), `and ${shown.length - MAX_EVENTS + 1} more`]
          : shown;
      const text = lines.join('\n');
      const size = {
        width: Math.max(...lines.map(widthOf), 0),
        height: lines.length * LINE_HEIGHT,
      };
      return {
        id: `e${index}`,
        sources: [from],
        targets: [to],
        labels: text === '' ? [] : [{ text, ...size }],
      };
    }),
  };
}
