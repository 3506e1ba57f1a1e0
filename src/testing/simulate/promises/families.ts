// Parents and children. P1: no child outlives its parent, and the outcome of a child reaches its parent
// unchanged. P3: the answer that a child gets was given by an agent above it. P6: one call starts one child.
import type { SubagentView } from '../../../actors/contracts/session-views.ts';
import type { LedgerEntry } from '../../../actors/contracts/outcome.ts';
import { eventsOf, type LogEntry, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';
import { SPAWNED, type SpawnedEvent } from '../../../actors/subagent/subagent-events.ts';

/** A child that is left behind is killed after 5 s; a journal may be slow. */
const OUTLIVES_MS = 6000;
const ENDED: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled']);
const SUB_AGENT = 'subagent__';

interface Person {
  readonly view: SubagentView;
  readonly endedAt: number;
}

interface Born {
  readonly id: string;
  readonly callId: string | null;
  readonly parentId: string;
  readonly toolName: string;
}

export function* families({ log }: RunRecord): Iterable<Broken> {
  const people = peopleIn(log);
  const born = childrenIn(log);
  if (born.length === 0) return;
  yield* nobodyIsLeft(people, born, log);
  yield* oneForEachCall(born);
  for (const { view } of people.values()) {
    const ledger = view.outcome?.toolLedger ?? [];
    for (const entry of ledger) {
      if (entry.status !== 'ok') continue;
      if (entry.toolName.startsWith(SUB_AGENT)) yield* waitedFor(view, entry, born, people);
      else yield* lookedAt(view, entry, people);
      if (entry.toolName === 'request_input') yield* answeredFromAbove(view, entry, people);
    }
  }
}

/** Returns each subagent as it was when it ended. */
function peopleIn(log: readonly LogEntry[]): ReadonlyMap<string, Person> {
  const people = new Map<string, Person>();
  for (const { at, event } of eventsOf(log, 'subagent.changed')) {
    const { id, state } = event.subagent;
    if (ENDED.has(people.get(id)?.view.state)) continue;
    people.set(id, { view: event.subagent, endedAt: ENDED.has(state) ? at : Infinity });
  }
  return people;
}

/** Returns the children of a session, by their births in the journal. */
function childrenIn(log: readonly LogEntry[]): readonly Born[] {
  return log.flatMap((entry) => {
    if (entry.kind !== 'kept' || entry.entry.event.type !== SPAWNED) return [];
    const { parentId, callId, task, worksFor } = entry.entry.event as SpawnedEvent;
    // Only the program is told the results of its subagents.
    if (parentId === null || worksFor === 'program') return [];
    return [{ id: entry.entry.unit, parentId, callId, toolName: task.toolName }];
  });
}

function* nobodyIsLeft(
  people: ReadonlyMap<string, Person>,
  born: readonly Born[],
  log: readonly LogEntry[],
): Iterable<Broken> {
  for (const { id, parentId } of born) {
    const child = people.get(id);
    const parent = people.get(parentId);
    if (!parent) yield { promise: 'P1', what: `${id} works for ${parentId}, whom nobody has seen` };
    if (!child || !parent) continue;
    const lateMs = upMs(log, parent.endedAt, child.endedAt);
    if (lateMs > OUTLIVES_MS)
      yield {
        promise: 'P1',
        what: `${id} was ${child.view.state} ${lateMs} ms after ${parentId}, whom it worked for, had ended`,
      };
  }
}

/** Returns the time between the two in which there was a process. */
function upMs(log: readonly LogEntry[], from: number, to: number): number {
  let ms = 0;
  let isUp = true;
  let last = from;
  for (const { at, kind } of log) {
    if (at > from && isUp) ms += Math.max(0, Math.min(at, to) - last);
    if (at > from) last = Math.min(Math.max(last, at), to);
    if (kind === 'crashed' || kind === 'slept') isUp = false;
    if (kind === 'started') isUp = true;
  }
  return ms;
}

/** Tools of an app may start any number of children. */
function* oneForEachCall(born: readonly Born[]): Iterable<Broken> {
  const seen = new Map<string, string>();
  for (const { id, parentId, callId, toolName } of born) {
    if (callId === null || !toolName.startsWith(SUB_AGENT)) continue;
    const call = `${parentId}/${callId}`;
    const first = seen.get(call);
    if (first !== undefined && first !== id)
      yield { promise: 'P6', what: `the call ${callId} of ${parentId} started ${first} and ${id}` };
    seen.set(call, id);
  }
}

/** Checks that the result of the call is the child's, or reports that there is none. */
function* waitedFor(
  parent: SubagentView,
  { callId, toolName, output }: LedgerEntry,
  born: readonly Born[],
  people: ReadonlyMap<string, Person>,
): Iterable<Broken> {
  const broken = (what: string): Broken => ({
    promise: 'P1',
    what: `${parent.id} read ${JSON.stringify(output)} of ${toolName} (${callId}): ${what}`,
  });
  const isFailure = isObject(output) && 'error' in output && 'code' in output;
  const child = born.find((one) => one.parentId === parent.id && one.callId === callId);
  const view = child && people.get(child.id)?.view;
  if (!view) {
    if (!isFailure) yield broken('nobody was started');
    return;
  }
  const isAsking = isObject(output) && output['status'] === 'waiting_input';
  if (isFailure || isAsking) {
    if (isFailure && view.state === 'completed') yield broken(`${view.id} was completed`);
  } else if (view.state !== 'completed') yield broken(`${view.id} was ${view.state}`);
  else if (!isSame(output, view.outcome?.output))
    yield broken(`${view.id} came to ${JSON.stringify(view.outcome?.output)}`);
}

/** Checks that the parent is shown the real outcome of a child that has ended. */
function* lookedAt(
  parent: SubagentView,
  { toolName, output }: LedgerEntry,
  people: ReadonlyMap<string, Person>,
): Iterable<Broken> {
  if (toolName !== 'await_subagent' && toolName !== 'check_subagent') return;
  for (const shown of viewsIn(output)) {
    const view = people.get(shown.subagentId)?.view;
    const broken = (what: string): Broken => ({
      promise: 'P1',
      what: `${parent.id} was told that ${shown.subagentId} is ${shown.status}: ${what}`,
    });
    if (!view) yield broken('nobody has seen it');
    else if (!ENDED.has(shown.status)) continue;
    else if (view.state !== shown.status) yield broken(`it was ${view.state}`);
    else if (shown.status === 'completed' && !isSame(shown.result, view.outcome?.output))
      yield broken(
        `with ${JSON.stringify(shown.result)}, and it came to ${JSON.stringify(view.outcome?.output)}`,
      );
  }
}

interface Shown {
  readonly subagentId: string;
  readonly status: string;
  readonly result?: unknown;
}

function viewsIn(output: unknown): readonly Shown[] {
  if (!isObject(output)) return [];
  const { subagents = [], alsoAsking = [] } = output as Partial<Record<string, readonly object[]>>;
  return [output, ...subagents, ...alsoAsking].filter(
    (one) => 'subagentId' in one,
  ) as readonly object[] as readonly Shown[];
}

/**
 * A child whose parent's call waits for it is told that its question cannot be answered; any other gets the
 * words of an agent above it.
 */
function* answeredFromAbove(
  child: SubagentView,
  { input, output }: LedgerEntry,
  people: ReadonlyMap<string, Person>,
): Iterable<Broken> {
  const { responded, response } = (output ?? {}) as { responded?: boolean; response?: string };
  if (responded !== true || child.parentId === null || child.toolName.startsWith(SUB_AGENT)) return;
  const said: unknown[] = [];
  for (let above = people.get(child.parentId); above; above = people.get(above.view.parentId ?? ''))
    for (const entry of above.view.outcome?.toolLedger ?? []) {
      const sent = entry.input as { subagentId?: string; content?: string } | null;
      if (entry.toolName === 'send_to_subagent' && sent?.subagentId === child.id)
        said.push(sent.content);
    }
  if (!said.includes(response))
    yield {
      promise: 'P3',
      what: `${child.id} asked ${JSON.stringify(input)} and was answered ${JSON.stringify(response)}; those above it had said ${JSON.stringify(said)}`,
    };
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one ?? null) === JSON.stringify(other ?? null);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
