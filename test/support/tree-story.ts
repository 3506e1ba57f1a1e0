// A story of a tree of subagents as plain data: its nodes, the behaviour of each model, and the outside events.
// `storyOf` generates it, `inWords` describes it, and `tree-play.ts` plays it.
//
// Most of a story consists of kinds and numbers. The subagents that exist at the time decide what a number stands for.

import fc from 'fast-check';
import type { SubagentConfig } from '../../src/index.ts';

/** The owner of the tree: a text session, a voice session, or a program. */
export type Scene = 'text' | 'voice' | 'program';

const callKinds = [
  'work',
  'work',
  'risk',
  'risk',
  'choose',
  'choose',
  'say what',
  'ask parent',
  'ask parent',
  'report',
  'await',
  'await',
  'send',
  'answer',
  'check',
  'kill',
  'hand in',
  'model fails',
  'model hangs',
] as const;

const outsideKinds = {
  text: ['words', 'words', 'words', 'click', 'click', 'click', 'click late', 'click wrong'],
  voice: ['words', 'words', 'words', 'click', 'barge in', 'barge in', 'click late', 'click wrong'],
  program: ['inform', 'inform', 'pause'],
} as const;

const everywhere = ['cancel', 'message', 'message', 'inform', 'pause', 'pause'] as const;
const sometimes = ['detach', 'attach', 'close', 'journal breaks'] as const;

export type CallKind = (typeof callKinds)[number];
export type OutsideKind =
  | (typeof outsideKinds)[Scene][number]
  | (typeof everywhere)[number]
  | (typeof sometimes)[number];

interface Act<Kind> {
  readonly kind: Kind;
  /** Selects the target among the subagents that exist, and how the action is done. */
  readonly n: number;
}

/** One answer of a model: parallel tool calls, or the final answer if there are no calls. */
export interface Move {
  readonly calls: readonly Act<CallKind>[];
  readonly delayMs: number;
}

/** The grant that a parent's model gives to a child that it spawns. */
export interface Grant {
  /** Null: all. */
  readonly tools: readonly string[] | null;
  readonly denied: readonly string[];
}

export interface Node {
  /** Selects the parent among the earlier nodes, or the lead agent if 0. */
  readonly parent: number;
  /** The parent waits for the node in the call that creates the node. */
  readonly isHandedOver: boolean;
  /** The parent's move that creates the node. */
  readonly at: number;
  readonly moves: readonly Move[];
  /** Before the node answers, it waits for its children and answers their questions. */
  readonly waits: boolean;
  readonly grant: Grant;
  readonly workstream: string | null;
  readonly maxDepth: number | null;
  readonly config: Partial<SubagentConfig>;
}

export interface Outside extends Act<OutsideKind> {
  readonly afterMs: number;
}

export interface Limits {
  readonly running: number;
  readonly live: number;
  readonly total: number;
  readonly depth: number;
  readonly whenFull: 'queue' | 'reject';
}

export interface Story {
  readonly nodes: readonly Node[];
  readonly outside: readonly Outside[];
  readonly limits: Limits;
  readonly budget: { readonly tokens?: number; readonly steps?: number; readonly agents?: number };
  /** The longest time until an entry is stored, in milliseconds. 0 means at once. */
  readonly journalMs: number;
  readonly seed: number;
}

const n = fc.nat(59);

/** Generates mostly the first value, and the others by their weight. */
function mostly<T>(usual: T, weight: number, ...others: T[]): fc.Arbitrary<T> {
  return fc.oneof(
    { arbitrary: fc.constant(usual), weight },
    ...others.map((each) => fc.constant(each)),
  );
}

const move: fc.Arbitrary<Move> = fc.record({
  calls: fc.array(fc.record({ kind: fc.constantFrom(...callKinds), n }), {
    minLength: 1,
    maxLength: 2,
  }),
  delayMs: mostly(0, 4, 40, 700, 4000),
});

/** Undefined has the same meaning as absent. */
const config = fc.record({
  maxSteps: mostly(8, 5, 2),
  timeout: mostly(12_000, 4, 1500),
  completion: mostly('turn', 3, 'tool'),
  onBargeIn: fc.constantFrom('continue', 'cancel'),
  stream: mostly(false, 3, true),
  lifetime: mostly('ephemeral', 5, 'session'),
  budget: mostly<SubagentConfig['budget']>(
    undefined,
    16,
    { steps: 2 },
    { tokens: 9000 },
    { agents: 1, steps: 6 },
    { timeMs: 2500 },
  ),
  inactivityTimeoutMs: mostly(0, 3, 1500),
  onHung: fc.constantFrom('mark', 'cancel'),
}) as fc.Arbitrary<Partial<SubagentConfig>>;

/** Tools that may be granted and denied. No subagent has the tool `nothing`. */
export const ownTools = ['alpha', 'beta', 'risky'] as const;

const grant: fc.Arbitrary<Grant> = fc.record({
  tools: fc.oneof(
    { arbitrary: fc.constant(null), weight: 3 },
    fc.subarray([...ownTools, 'spawn_subagent', 'await_subagent']),
    fc.constant(['alpha', 'nothing']),
  ),
  denied: mostly<readonly string[]>([], 2, ['alpha'], ['beta', 'risky'], ['spawn_subagent']),
});

const node: fc.Arbitrary<Node> = fc.record({
  parent: fc.nat(5),
  isHandedOver: mostly(false, 2, true),
  at: mostly(0, 2, 1, 2),
  moves: fc.array(move, { maxLength: 3 }),
  waits: mostly(true, 3, false),
  grant,
  workstream: mostly<string | null>(null, 3, 'ws'),
  maxDepth: mostly<number | null>(null, 6, 1, 2),
  config,
});

const limits: fc.Arbitrary<Limits> = fc.record({
  running: mostly(2, 2, 1, 10),
  live: mostly(20, 3, 2, 3),
  total: mostly(100, 5, 3),
  depth: mostly(3, 3, 1, 2),
  whenFull: mostly('queue', 4, 'reject' as const),
}) as fc.Arbitrary<Limits>;

/** Generates stories for a scene. The stories are small, because many small stories find more faults than long ones. */
export function storyOf(scene: Scene): fc.Arbitrary<Story> {
  const kinds: readonly OutsideKind[] = [
    ...outsideKinds[scene],
    ...outsideKinds[scene],
    ...everywhere,
    ...sometimes,
  ];
  return fc.record({
    nodes: fc.array(node, { minLength: 1, maxLength: 4 }),
    outside: fc.array(
      fc.record({
        kind: fc.constantFrom(...kinds),
        n,
        afterMs: mostly(0, 1, 30, 400, 1500),
      }),
      { maxLength: 7 },
    ),
    limits,
    budget: fc.oneof(
      { arbitrary: fc.constant({}), weight: 4 },
      fc.constantFrom({ steps: 6 }, { tokens: 12_000 }, { agents: 3 }),
    ),
    journalMs: mostly(0, 5, 25),
    seed: fc.nat(1000),
  });
}

/** Returns the number of the node's parent, or null for the lead agent. */
export function parentOf(nodes: readonly Node[], index: number): number | null {
  const { parent = 0 } = nodes[index] ?? {};
  return index === 0 || parent === 0 ? null : (parent - 1) % index;
}

/** Returns the children that are created in one of a node's moves. */
export function childrenAt(nodes: readonly Node[], index: number, moveAt: number): number[] {
  return nodes.flatMap((child, at) =>
    parentOf(nodes, at) === index && child.at % movesOf(nodes, index) === moveAt ? [at] : [],
  );
}

/** Returns the number of moves that a node makes: its own moves, and one more that creates children. */
export function movesOf(nodes: readonly Node[], index: number): number {
  return (nodes[index]?.moves.length ?? 0) + 1;
}

/** Describes the story for a human reader. */
export function inWords({ nodes, outside, limits, budget, journalMs, seed }: Story): string {
  const act = ({ kind, n: number }: Act<string>): string => `${kind} (${number})`;
  const lines = nodes.flatMap((each, index) => {
    const { moves, waits, grant: granted, workstream, maxDepth, config: own, isHandedOver } = each;
    const parent = parentOf(nodes, index);
    const made = isHandedOver ? 'as a tool of' : 'spawned by';
    const by = parent === null ? 'of the lead agent' : `${made} n${parent}`;
    const more = JSON.stringify({ ...own, ...granted, workstream, maxDepth, waits });
    const steps = Array.from({ length: movesOf(nodes, index) }, (_, at) => {
      const { calls = [], delayMs = 0 } = moves[at] ?? {};
      const begins = childrenAt(nodes, index, at).map((child) => `makes n${child}`);
      const does = [...calls.map(act), ...begins].join(' and ') || 'answers';
      return `    ${at + 1}. ${delayMs > 0 ? `after ${delayMs} ms ` : ''}${does}`;
    });
    return [`  n${index}, ${by}, ${more}`, ...steps];
  });
  const events = outside.map((each) => `  ${each.afterMs} ms later: ${act(each)}`);
  const { running, live, total, depth, whenFull } = limits;
  return [
    `At most ${running} run, ${live} live, ${total} in all, depth ${depth}, when full: ${whenFull}; ` +
      `budget ${JSON.stringify(budget)}, journal ${journalMs} ms, seed ${seed}.`,
    ...lines,
    ...(events.length > 0 ? ['From outside:', ...events] : ['Nothing from outside.']),
  ].join('\n');
}
