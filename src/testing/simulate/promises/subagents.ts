// The promises about subagents: how they end, their families, calls, limits and authority, and the agents of services.

import { isRecord, propertiesOf, callKey } from '../../../values/json.ts';
import { nothingTwice as noneTwice } from '../../conformance/promises.ts';
import { isPlainYes, saysYes } from '../../conformance/words.ts';
import { eventsOf, upToClosing, type Effect, type LogEntry, type RunRecord } from '../log/log.ts';
import type { Broken } from './broken.ts';
import {
  coversCall,
  type DeliveryView,
  type QuestionView,
  type SubagentView,
} from '../../../actors/contracts/session-views.ts';
import type { LedgerEntry } from '../../../actors/contracts/outcome.ts';
import { SPAWNED, type SpawnedEvent } from '../../../actors/subagent/subagent-events.ts';
import { sessionLimits } from '../../../actors/admission/limits.ts';
import { subagentOf } from '../../../actors/model/tool-flags.ts';
import type { SubagentConfig } from '../../../actors/contracts/config.ts';
import type { SimulatedApp } from '../log/app.ts';
import { deliveryAbout } from '../../../actors/contracts/records.ts';
import type { JournalEntry } from '../../../actors/ports/journal.ts';
import { tellingOf, type CheckedEvent } from '../../../actors/services/service-events.ts';

const ENDED: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled']);

/** P1: one ending. A subagent that was accepted ends exactly once, and its outcome lists the work that it did. */
export function* endings({ log, effects }: RunRecord): Iterable<Broken> {
  const broken = (what: string): Broken => ({ promise: 'P1', what });
  const ended = new Map<string, { readonly state: string; readonly outcome: string }>();
  const seen = new Set<string>();
  const ledgers = new Map<string, ReadonlyMap<string, string>>();
  for (const { event } of eventsOf(log, 'subagent.changed')) {
    const { id, state, outcome } = event.subagent;
    // A cancelled subagent's activity is reported when it ends, but it is not stored.
    const told = JSON.stringify({ ...outcome, diagnostics: null });
    const before = ended.get(id);
    // A subagent that is `spawning` has not been accepted yet, because its first entry has not been written.
    if (state !== 'spawning') seen.add(id);
    if (before && before.state !== state)
      yield broken(`${id} was ${before.state}, and then ${state}`);
    else if (before && before.outcome !== told)
      yield broken(`the outcome of ${id} was ${before.outcome}, and then ${told}`);
    if (!ENDED.has(state)) continue;
    ended.set(id, { state, outcome: told });
    if (!outcome) yield broken(`${id} ended as ${state} without an outcome`);
    else
      ledgers.set(
        id,
        new Map(outcome.toolLedger.map(({ callId, status }) => [callId, status] as const)),
      );
  }
  for (const id of seen) if (!ended.has(id)) yield broken(`${id} never ended`);
  for (const { subagentId, callId, tool, status } of effects) {
    const ledger = subagentId === null ? undefined : ledgers.get(subagentId);
    const entry = ledger?.get(callId);
    if (ledger && (entry === undefined || entry === 'not_run' || entry === 'denied'))
      yield broken(
        `${subagentId} ran ${tool} (${callId}, which ${status}); its ledger says ${entry ?? 'nothing'}`,
      );
  }
}

/** An orphaned child is killed after 5 s. The rest is for a slow journal. */
const OUTLIVES_MS = 6000;
const PREFIX = 'subagent__';

interface Person {
  readonly view: SubagentView;
  readonly endedAt: number;
}

interface Child {
  readonly id: string;
  readonly callId: string | null;
  readonly parentId: string;
  readonly toolName: string;
}

/**
 * Parents and children. P1: no child outlives its parent, and the outcome of a child reaches its parent unchanged. P3:
 * the answer that a child receives comes from one of its ancestors. P6: one call starts one child.
 */
export function* families({ log }: RunRecord): Iterable<Broken> {
  const people = peopleIn(log);
  const children = childrenIn(log);
  if (children.length === 0) return;
  yield* noChildOutlives(people, children, log);
  yield* oneForEachCall(children);
  for (const { view } of people.values()) {
    const ledger = view.outcome?.toolLedger ?? [];
    for (const entry of ledger) {
      if (entry.status !== 'ok') continue;
      if (entry.toolName.startsWith(PREFIX)) yield* waitedFor(view, entry, children, people);
      else yield* lookedAt(view, entry, people);
      if (entry.toolName === 'request_input') yield* answeredFromAbove(view, entry, people);
    }
  }
}

/** Returns the last shown state of each subagent. */
function peopleIn(log: readonly LogEntry[]): ReadonlyMap<string, Person> {
  const people = new Map<string, Person>();
  for (const { at, event } of eventsOf(log, 'subagent.changed')) {
    const { id, state } = event.subagent;
    if (ENDED.has(people.get(id)?.view.state)) continue;
    people.set(id, { view: event.subagent, endedAt: ENDED.has(state) ? at : Infinity });
  }
  return people;
}

/** Finds the child subagents by their first entries in the journal. */
function childrenIn(log: readonly LogEntry[]): readonly Child[] {
  return log.flatMap((entry) => {
    if (entry.kind !== 'kept' || entry.entry.event.type !== SPAWNED) return [];
    const { parentId, callId, task, worksFor } = entry.entry.event as SpawnedEvent;
    // These results go only to the program, and not to a parent.
    if (parentId === null || worksFor === 'program') return [];
    return [{ id: entry.entry.unit, parentId, callId, toolName: task.toolName }];
  });
}

function* noChildOutlives(
  people: ReadonlyMap<string, Person>,
  children: readonly Child[],
  log: readonly LogEntry[],
): Iterable<Broken> {
  for (const { id, parentId } of children) {
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

/** Returns how long a process was alive between two moments. */
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

/** Checks that one call starts one child. The app's own tools may start any number of children. */
function* oneForEachCall(children: readonly Child[]): Iterable<Broken> {
  const seen = new Map<string, string>();
  for (const { id, parentId, callId, toolName } of children) {
    if (callId === null || !toolName.startsWith(PREFIX)) continue;
    const call = `${parentId}/${callId}`;
    const first = seen.get(call);
    if (first !== undefined && first !== id)
      yield { promise: 'P6', what: `the call ${callId} of ${parentId} started ${first} and ${id}` };
    seen.set(call, id);
  }
}

/** Checks that the call returned the child's result, or stated that there is none. */
function* waitedFor(
  parent: SubagentView,
  { callId, toolName, output }: LedgerEntry,
  children: readonly Child[],
  people: ReadonlyMap<string, Person>,
): Iterable<Broken> {
  const broken = (what: string): Broken => ({
    promise: 'P1',
    what: `${parent.id} read ${JSON.stringify(output)} of ${toolName} (${callId}): ${what}`,
  });
  const isFailure = isRecord(output) && 'error' in output && 'code' in output;
  const child = children.find((one) => one.parentId === parent.id && one.callId === callId);
  const view = child && people.get(child.id)?.view;
  if (!view) {
    if (!isFailure) yield broken('nobody was started');
    return;
  }
  const isAsking = isRecord(output) && output['status'] === 'waiting_input';
  if (isFailure || isAsking) {
    if (isFailure && view.state === 'completed') yield broken(`${view.id} was completed`);
  } else if (view.state !== 'completed') yield broken(`${view.id} was ${view.state}`);
  else if (!isSame(output, view.outcome?.output))
    yield broken(`${view.id} came to ${JSON.stringify(view.outcome?.output)}`);
}

/** Checks that the parent sees the actual outcome of each child that has ended. */
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
  if (!isRecord(output)) return [];
  const { subagents = [], alsoAsking = [] } = output as Partial<Record<string, readonly object[]>>;
  return [output, ...subagents, ...alsoAsking].filter(
    (one) => 'subagentId' in one,
  ) as readonly object[] as readonly Shown[];
}

/**
 * Checks the answers that children receive. If the parent's call is waiting for the child, the child is informed that
 * its question cannot be answered. Any other child receives an answer from one of its ancestors.
 */
function* answeredFromAbove(
  child: SubagentView,
  { input, output }: LedgerEntry,
  people: ReadonlyMap<string, Person>,
): Iterable<Broken> {
  const { responded, response } = (output ?? {}) as { responded?: boolean; response?: string };
  if (responded !== true || child.parentId === null || child.toolName.startsWith(PREFIX)) return;
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

/**
 * P6: nothing twice. Each call has one idempotency key and one answer. A tool runs once per key, unless it is declared
 * as idempotent.
 */
export function* nothingTwice({ log, effects }: RunRecord): Iterable<Broken> {
  const runs = new Map<string, number>();
  for (const { key, tool, isIdempotent, process } of effects) {
    const times = (runs.get(key) ?? 0) + 1;
    runs.set(key, times);
    if (times > 1 && !isIdempotent)
      yield {
        promise: 'P6',
        what: `${tool} (${key}) ran ${times} times, the last time in process ${process}`,
      };
  }
  const calls = new Set<string>();
  for (const { subagentId, callId, tool, key, isIdempotent } of effects) {
    const call = `${subagentId}/${callId}/${key}`;
    if (subagentId !== null && calls.has(call) && !isIdempotent)
      yield { promise: 'P6', what: `the call ${callId} of ${subagentId} ran ${tool} twice` };
    calls.add(call);
  }
  // A process repeats the last events of the previous process, because it cannot know them.
  for (const number of new Set(log.map(({ process }) => process)))
    for (const what of noneTwice(
      log.flatMap((entry) => (entry.kind === 'event' && entry.process === number ? entry : [])),
    ))
      yield { promise: 'P6', what };
}

/**
 * P7: bounded. The numbers of working, living and total subagents never exceed the limits, and neither do the steps of
 * a subagent. A closed session leaves no timers behind.
 */
export function* bounded(record: RunRecord): Iterable<Broken> {
  yield* counted(record);
  yield* steps(record);
  const { timersLeft } = record;
  if (timersLeft > 0)
    yield { promise: 'P7', what: `${timersLeft} timers are left of a session that is closed` };
}

/** Counts after all events with the same time, because a subagent may pass through several states in one moment. */
function* counted({ log, app }: RunRecord): Iterable<Broken> {
  const limits = sessionLimits(app.limits);
  const states = new Map<string, string>();
  const told = new Set<string>();
  for (const [index, entry] of log.entries()) {
    if (entry.kind === 'event' && entry.event.type === 'subagent.changed') {
      const { id, state } = entry.event.subagent;
      states.set(id, state);
    }
    // The process crashed before it had written the subagent's first entry.
    if (entry.kind === 'crashed')
      for (const [id, state] of states) if (state === 'spawning') states.delete(id);
    if (entry.at === log[index + 1]?.at) continue;
    const all = [...states.values()];
    const counts = [
      ['run', all.filter((one) => one === 'running').length, limits.maxConcurrentPerSession],
      ['live', all.filter((one) => !ENDED.has(one)).length, limits.maxLivePerSession],
      ['came to be', all.length, limits.maxTotalPerSession],
    ] as const;
    for (const [what, count, most] of counts)
      if (count > most && !told.has(what)) {
        told.add(what);
        yield { promise: 'P7', what: `${count} subagents ${what}, at most ${most} may` };
      }
  }
}

function* steps({ log, app }: RunRecord): Iterable<Broken> {
  const { maxDepth } = sessionLimits(app.limits);
  const told = new Set<string>();
  for (const entry of log) {
    if (entry.kind !== 'event' || entry.event.type !== 'subagent.changed') continue;
    const { id, step, maxSteps, depth } = entry.event.subagent;
    // After a budget has been used up, one more call is allowed, in which the model reports its work so far.
    const isBounded = step <= maxSteps + 1 && depth <= maxDepth;
    if (isBounded || told.has(id)) continue;
    told.add(id);
    yield { promise: 'P7', what: `${id} is at step ${step} of ${maxSteps}, depth ${depth}` };
  }
}

/** The runtime adds these tools, and they do not grant any authority. */
const RUNTIMES_OWN: ReadonlySet<string> = new Set([
  'ask_user',
  'not_for_me',
  'complete_task',
  'request_input',
]);

/**
 * P8: least authority. A subagent is offered only the tools in its configuration, and runs no others. A call that needs
 * consent runs only after the user has consented to exactly that call.
 */
export function* authority(record: RunRecord): Iterable<Broken> {
  yield* ownTools(record);
  yield* consent(record);
}

function* ownTools({ app, log, effects }: RunRecord): Iterable<Broken> {
  const configs = configsIn(app);
  const names = new Map(
    eventsOf(log, 'subagent.changed').map(({ event }) => [event.subagent.id, event.subagent.name]),
  );
  const mayUse = (name: string, tool: string): boolean => {
    const config = configs.get(name);
    // Only the parent knows the configuration of its child.
    if (!config || config.createInstance) return true;
    return tool in (config.tools ?? {}) || RUNTIMES_OWN.has(tool);
  };
  const said = new Set<string>();
  for (const entry of log) {
    if (entry.kind !== 'model') continue;
    for (const tool of entry.toolNames) {
      const what = `${entry.name} was offered ${tool}, which it does not have`;
      if (mayUse(entry.name, tool) || said.has(what)) continue;
      said.add(what);
      yield { promise: 'P8', what };
    }
  }
  for (const { subagentId, tool } of effects) {
    const name = subagentId === null ? undefined : names.get(subagentId);
    if (name !== undefined && !mayUse(name, tool))
      yield { promise: 'P8', what: `${subagentId} (${name}) ran ${tool}, which it does not have` };
  }
}

/** Returns the configurations by name, including those that tools of other configurations run and those of services. */
function configsIn({
  subagentConfigs = {},
  services: served = [],
}: SimulatedApp): ReadonlyMap<string, SubagentConfig> {
  const configs = new Map<string, SubagentConfig>();
  const add = (config: SubagentConfig): void => {
    if (configs.has(config.name)) return;
    configs.set(config.name, config);
    for (const tool of Object.values(config.tools ?? {})) {
      const below = subagentOf(tool);
      if (below) add(below);
    }
  };
  for (const config of Object.values(subagentConfigs)) add(config);
  for (const { agent } of served) add(agent);
  return configs;
}

function* consent({ app, log, effects }: RunRecord): Iterable<Broken> {
  const given = consentsIn(log);
  const lasting = yield* lastingIn(log);
  const subagents = new Map(
    eventsOf(log, 'subagent.changed').map(({ event }) => [event.subagent.id, event.subagent]),
  );
  const covers = (
    { question, at, until }: Lasting,
    call: Pick<Effect, 'tool' | 'input' | 'subagentId' | 'at'>,
  ): boolean => {
    const { subagentId, subagentName, action, changed, lasts, mayDiffer } = question;
    const caller = subagents.get(call.subagentId ?? '');
    let asker = caller;
    while (asker && asker.id !== subagentId) asker = subagents.get(asker.parentId ?? '');
    const isOfScope = lasts === 'task' ? asker : caller?.name === subagentName;
    return (
      Boolean(isOfScope) &&
      at <= call.at &&
      call.at <= until + RUNS_WITHIN_MS &&
      coversCall(
        { mayDiffer, action: action && { ...action, input: (changed ?? action).input } },
        { toolName: call.tool, input: call.input },
      )
    );
  };
  const preApproved = new Set(
    Object.values(app.subagentConfigs ?? {}).flatMap((config) =>
      (config.preApproved ?? []).map(({ tool }) => tool),
    ),
  );
  for (const { needsApproval, tool, input, subagentId, at } of effects) {
    if (!needsApproval || preApproved.has(tool)) continue;
    const key = callKey(tool, input);
    const isGiven =
      given.some((yes) => yes.at <= at && yes.subagentId === subagentId && yes.key === key) ||
      lasting.some((yes) => covers(yes, { tool, input, subagentId, at }));
    if (!isGiven)
      yield {
        promise: 'P8',
        what: `${subagentId} ran ${tool} with ${JSON.stringify(input)}, and the user had not consented to that`,
      };
  }
}

/**
 * Returns the calls that the user approved, either with the answer or with a yes before the read-back. If a
 * `consentModel` misinterprets the utterance that follows a read-back, that utterance becomes the answer.
 */
function consentsIn(log: RunRecord['log']) {
  const given: { readonly at: number; readonly subagentId: string; readonly key: string }[] = [];
  const open = new Map<string, QuestionView>();
  const affirmed = new Set<string>();
  const callOf = ({ requestId, action, changed }: QuestionView): string =>
    callKey(`${requestId} ${action?.toolName}`, (changed ?? action)?.input);
  for (const entry of log) {
    if (entry.kind === 'said' && isPlainYes(entry.words))
      for (const question of open.values()) affirmed.add(callOf(question));
    if (entry.kind !== 'event' || entry.event.type !== 'question.changed') continue;
    const { question } = entry.event;
    const { requestId, subagentId, action, changed, state, answer, putAgain } = question;
    if (state === 'open') open.set(requestId, question);
    else open.delete(requestId);
    const isYes = saysYes(answer) || (putAgain !== undefined && affirmed.has(callOf(question)));
    if (action && state === 'answered' && isYes)
      given.push({
        at: entry.at,
        subagentId,
        key: callKey(action.toolName, (changed ?? action).input),
      });
  }
  return given;
}

/** An approved call must start within this time. The tool and the journal may be slow. */
const RUNS_WITHIN_MS = 12_000;

/** A lasting approval, with the times at which the user granted and revoked it. */
interface Lasting {
  readonly question: QuestionView;
  readonly at: number;
  until: number;
}

/** Returns the lasting approvals. P3: each was granted by a button, or by a plain yes after it was read back. */
function* lastingIn(log: RunRecord['log']): Generator<Broken, readonly Lasting[]> {
  const found = new Map<string, Lasting>();
  const proposed = new Set<string>();
  const affirmed = new Set<string>();
  for (const entry of log) {
    if (entry.kind === 'said' && isPlainYes(entry.words))
      for (const requestId of proposed) affirmed.add(requestId);
    if (entry.kind === 'clicked' && entry.answer.lasts) affirmed.add(entry.requestId);
    const before = entry.kind === 'receipt' ? found.get(entry.requestId) : undefined;
    if (entry.kind === 'receipt' && before && entry.receipt.accepted && !entry.answer.approved)
      before.until = Math.min(before.until, entry.at);
    if (entry.kind !== 'event' || entry.event.type !== 'question.changed') continue;
    const { question } = entry.event;
    const { requestId, state, lasts } = question;
    const known = found.get(requestId);
    if (state !== 'answered' && lasts) proposed.add(requestId);
    else proposed.delete(requestId);
    if (state !== 'answered') continue;
    if (known && !lasts) known.until = Math.min(known.until, entry.at);
    if (known || !lasts) continue;
    found.set(requestId, { question, at: entry.at, until: Infinity });
    if (!affirmed.has(requestId))
      yield {
        promise: 'P3',
        what: `${requestId} lasts for the ${lasts}, and the user has not agreed to that`,
      };
  }
  return [...found.values()];
}

/**
 * Services. P6: each event is examined by only one agent. P4: the agent's findings are delivered, but an empty finding
 * is not. An accepted event is never lost without a report. Programs that run together with the session: each program
 * receives each result exactly once.
 */
export function* services({ log }: RunRecord): Iterable<Broken> {
  const seen = upToClosing(log);
  const kept = seen.flatMap((entry) => (entry.kind === 'kept' ? [entry.entry] : []));
  yield* resultsHad(kept);
  const arrived = kept.filter(({ event }) => event.type === 'event.arrived');
  if (arrived.length === 0) return;
  const agents = new Map<string, SubagentView>();
  for (const { event } of eventsOf(seen, 'subagent.changed'))
    agents.set(event.subagent.id, event.subagent);
  const told = new Map<string, DeliveryView>();
  for (const { event } of eventsOf(seen, 'delivery.changed'))
    told.set(event.delivery.deliveryId, event.delivery);
  const dropped = new Set(
    eventsOf(seen, 'service.dropped').map(({ event }) => event.event.eventId),
  );
  for (const { scope, event } of arrived) {
    const { eventId, event: happened } = event as Arrived;
    const looking = kept.filter(
      (entry) => spawnedIn(entry)?.idempotencyKey === `${scope}:${eventId}`,
    );
    const [first] = looking;
    if (looking.length > 1)
      yield {
        promise: 'P6',
        what: `${looking.map(({ unit }) => unit).join(' and ')} looked at the event ${eventId}`,
      };
    const agent = first && agents.get(first.unit);
    if (!agent) {
      if (!dropped.has(eventId))
        yield { promise: 'P4', what: `nobody looked at the event ${eventId}, and nobody said so` };
      continue;
    }
    yield* tells(agent, eventId, happened, told.get(deliveryAbout(eventId)));
  }
}

interface Arrived {
  readonly type: string;
  readonly eventId: string;
  readonly event: CheckedEvent;
}

function* tells(
  { id, state, outcome }: SubagentView,
  eventId: string,
  { priority }: CheckedEvent,
  delivery: DeliveryView | undefined,
): Iterable<Broken> {
  if (!ENDED.has(state) || !outcome || state === 'cancelled') return;
  const broken = (what: string): Broken => ({
    promise: 'P4',
    what: `${id}, which looked at the event ${eventId}, is ${state}: ${what}`,
  });
  const text = outcome.status === 'completed' ? tellingOf(outcome) : null;
  const isOwed = outcome.status === 'completed' ? text !== null : priority === 'urgent';
  if (isOwed && !delivery) yield broken('the user was not told');
  else if (!isOwed && delivery) yield broken(`the user was told ${JSON.stringify(delivery.text)}`);
  else if (text !== null && delivery && delivery.text !== text)
    yield broken(`it found ${JSON.stringify(text)}, and told ${JSON.stringify(delivery.text)}`);
}

/** Checks that each program has received each result once, which its scope in the journal records. */
function* resultsHad(kept: readonly JournalEntry[]): Iterable<Broken> {
  const had = new Map<string, number>();
  for (const { scope, event } of kept)
    if (event.type === 'result.had') {
      const key = `${scope}/${String(propertiesOf(event)['subagentId'])}`;
      had.set(key, (had.get(key) ?? 0) + 1);
    }
  const programs = new Set(kept.flatMap(({ scope, unit }) => (scope === unit ? [scope] : [])));
  for (const entry of kept) {
    const { scope, unit } = entry;
    const spawned = spawnedIn(entry);
    if (!spawned || spawned.worksFor !== 'program' || spawned.parentId !== null) continue;
    // A run with an id keeps its result permanently (RUN-SUBAGENT-KR-1), so a repeated run returns it again.
    const isKeptRun = spawned.idempotencyKey === scope;
    if (!programs.has(scope) || isKeptRun) continue;
    const times = had.get(`${scope}/${unit}`) ?? 0;
    if (times !== 1)
      yield {
        promise: 'P4',
        what: `the program ${scope} had the result of ${unit} ${times} times`,
      };
  }
}

export function spawnedIn({ event }: JournalEntry): SpawnedEvent | null {
  return event.type === SPAWNED ? (event as SpawnedEvent) : null;
}
