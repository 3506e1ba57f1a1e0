// Restores subagents from the journal. Each subagent returns to its place in the tree, with its configuration from the
// current code.
//
// Does not: start anything. Live subagents resume when all have been restored.
//
// Invariants
//   RESTORATION-1. Every subagent in the journal is in the registry again: live, ended, or lost with a reason.
//   RESTORATION-2. A restored subagent never gets more authority than the current code grants. Its configuration is
//       validated and its grant restricted, as when it was admitted.
//   RESTORATION-3. If the end of a subagent has already been reported, it is not reported again.

import type { Ending } from '../../machines/index.ts';
import { messageOf } from '../../values/errors.ts';
import type { JournalEntry } from '../ports/journal.ts';
import { misshapen } from '../runtime/event-shapes.ts';
import { raisedLimits, type SubagentConfig, type SubagentDefinition } from '../contracts/config.ts';
import { readOutcome, type Outcome } from '../contracts/outcome.ts';
import { Subagent } from '../subagent/subagent.ts';
import { spawnedShape, SPAWNED, type SpawnedEvent } from '../subagent/subagent-events.ts';
import type { SubagentHost } from './subagent-host.ts';
import {
  SubagentRecord,
  type Admission,
  type EndedSnapshot,
  type RecordSnapshot,
} from './subagent-registry.ts';
import { granterOf, grantTools, sourceOf, type Granter } from './grants.ts';
import { reconfigureOf, subagentOf } from '../model/tool-flags.ts';
import type { ScopePorts } from './scope-ports.ts';
import { checkSubagentConfig } from '../subagent/config.ts';

/** The facts that the journal contains about one subagent. */
export interface RestoredUnit {
  /** When the subagent was admitted, in milliseconds since 1970. */
  readonly bornAt: number;
  readonly birth: SpawnedEvent;
  /** The state that precedes the entries, or null if the entries start with `subagent.spawned`. */
  readonly rest: RecordSnapshot['rest'] | null;
  readonly asked?: RecordSnapshot['asked'];
  readonly deliveredAt?: RecordSnapshot['deliveredAt'];
  readonly entries: readonly JournalEntry[];
  /** The reason why the subagent cannot continue. @defaultValue none */
  readonly problem?: string;
}

/** The subagents by id, in order of admission. */
export type RestoredUnits = ReadonlyMap<string, RestoredUnit>;

/** Finds the subagents among the units in a scope. `known`: their states before the given entries. */
export function restoredUnits(
  units: ReadonlyMap<string, readonly JournalEntry[]>,
  known: readonly RecordSnapshot[] = [],
): RestoredUnits {
  const found = new Map<string, RestoredUnit>();
  for (const { id, ...before } of known) found.set(id, { ...before, entries: units.get(id) ?? [] });
  for (const [id, entries] of units) {
    const [first] = entries;
    if (found.has(id) || first?.event.type !== SPAWNED) continue;
    const reason = misshapen(first.event, { [SPAWNED]: spawnedShape });
    const bornAt = first.at;
    if (reason === null) {
      found.set(id, { bornAt, birth: first.event as SpawnedEvent, rest: null, entries });
      continue;
    }
    const problem = `Its first entry in the journal cannot be read: ${reason}`;
    found.set(id, { bornAt, birth: unknownSpawn(first), rest: null, entries: [], problem });
  }
  return found;
}

/**
 * Builds a `subagent.spawned` event as a replacement for an unreadable one. The subagent does nothing and ends as lost.
 */
function unknownSpawn({ event }: JournalEntry): SpawnedEvent {
  const { callId, worksFor } = event as Partial<Record<keyof SpawnedEvent, unknown>>;
  return {
    type: SPAWNED,
    name: 'unknown',
    task: { toolName: 'unknown', args: {}, description: '' },
    parentId: null,
    worksFor: typeof worksFor === 'string' ? worksFor : '',
    agentName: null,
    callId: typeof callId === 'string' ? callId : null,
    workstreamId: null,
    idempotencyKey: null,
    request: null,
    maxDepth: null,
    grant: null,
    recipe: null,
    messages: null,
    limits: { maxSteps: 1, timeoutMs: 1, maxInputRetries: 1 },
  };
}

export interface Restored {
  readonly live: readonly SubagentRecord[];
  /** Subagents whose end has not been reported. */
  readonly pending: readonly SubagentRecord[];
  /** Subagents whose end has been reported but whose result has not been read. */
  readonly unread: readonly SubagentRecord[];
  readonly lost: readonly { readonly record: SubagentRecord; readonly reason: string }[];
}

type MutableRestored = { -readonly [Name in keyof Restored]: Restored[Name][number][] };

/** Restores the subagents, each with the ports that its entry names. None of them resumes yet. */
export function restoreSubagents(
  host: SubagentHost,
  units: RestoredUnits,
  scopes: readonly ScopePorts[],
): Restored {
  const restored: MutableRestored = { live: [], pending: [], unread: [], lost: [] };
  for (const [id, unit] of units) restoreOne(host, id, unit, scopes, restored);
  return restored;
}

function restoreOne(
  host: SubagentHost,
  id: string,
  unit: RestoredUnit,
  scopes: readonly ScopePorts[],
  restored: MutableRestored,
): void {
  const { bornAt, birth: spawned, rest, entries, asked, deliveredAt } = unit;
  const { path: scope, registry, supervisor, budgets, instances } = host;
  const parent = spawned.parentId === null ? null : (registry.get(spawned.parentId) ?? null);
  const ports =
    parent?.admission.ports ?? scopes.find(({ name }) => name === spawned.worksFor) ?? host.ports;
  const found = definitionOf(host, spawned, parent, ports);
  const { definition, denied } = found;
  const subagent = new Subagent(ports.host, id, definition, spawned.task, host);
  const admission: Admission = {
    id,
    definition,
    task: spawned.task,
    title: spawned.title ?? null,
    lineage: parent ? [...parent.admission.lineage, parent.id] : [],
    maxDepth: spawned.maxDepth ?? Infinity,
    denied,
    callId: spawned.callId,
    workstreamId: spawned.workstreamId,
    idempotencyKey: spawned.idempotencyKey,
    request: spawned.request,
    requestedBy: spawned.requestedBy ?? null,
    ports,
    startedAt: bornAt,
  };
  const record = new SubagentRecord(admission, subagent, spawned);
  if (rest && 'outcome' in rest) {
    restoreEnded(host, record, rest, restored);
    return;
  }
  record.asked = asked ?? null;
  record.deliveredAt = deliveredAt ?? null;
  let { problem } = found;
  let ending: Ending | null = null;
  try {
    const { keepsQuestions = true } = ports.terms;
    ending = rest ? subagent.restore(rest, entries, keepsQuestions) : subagent.refold(entries);
  } catch (error) {
    problem = messageOf(error);
  }
  problem = unit.problem ?? problem;
  registry.add(record);
  supervisor.readmit(scope, id);
  instances.enter(record);
  // The subagent held its instance's lock when it ended or its process died, so no other run may acquire the lock
  // first.
  if (subagent.step > 0) instances.lock(record, () => {});
  const { totalTokens: tokens, cost = 0 } = subagent.usage;
  const used = { startedAt: bornAt, tokens, cost, steps: subagent.step };
  const limits = definition.budget && raisedLimits(definition.budget, subagent.raised);
  budgets.readmit(id, spawned.parentId, limits, used, (message) => subagent.timeIsOver(message));
  const end = ports.endOf(id, spawned.callId);
  const knowsEnd = record.deliveredAt !== null || end.isKnown;
  const told = knowsEnd && parent === null ? end.outcome : null;
  // An earlier process reported the end but could not write it to the journal (P1).
  if (told && problem === null) ending ??= endingOf(told);
  if (ending && (knowsEnd || parent !== null)) {
    //   RESTORATION-3. The subagent cannot be resumed, but its result can be read.
    const { messages } = subagent;
    const at = entries.at(-1)?.at ?? bornAt;
    const recalled = subagent.recall(ending);
    // The processed outcome, if it was reported.
    registry.ended(record, told ?? recalled, at);
    if (parent === null ? !end.isPending : !parent.isLive) registry.markDelivered(record, at);
    registry.keepResult(record, at);
    supervisor.ended(scope, id);
    budgets.ended(id);
    instances.ended(record, () => messages);
    return;
  }
  if (ending) restored.pending.push(record);
  else if (problem !== null) restored.lost.push({ record, reason: problem });
  else restored.live.push(record);
}

/** Restores a subagent that has ended, so that its result can be read (RESTORATION-3). */
function restoreEnded(
  host: SubagentHost,
  record: SubagentRecord,
  { outcome: stored, endedAt, deliveredAt, step }: EndedSnapshot,
  restored: MutableRestored,
): void {
  const outcome = readOutcome(stored);
  const { path: scope, registry, supervisor, budgets } = host;
  const { id, parentId, admission } = record;
  const { totalTokens: tokens, cost = 0 } = outcome.usage;
  const used = { startedAt: admission.startedAt, tokens, cost, steps: step };
  registry.add(record);
  supervisor.remember(scope, 1);
  budgets.readmit(id, parentId, admission.definition.budget, used, () => {});
  budgets.ended(id);
  registry.ended(record, outcome, endedAt);
  record.lastStep = step;
  if (deliveredAt !== null) registry.markDelivered(record, deliveredAt);
  else {
    registry.keepResult(record, endedAt);
    if (parentId === null) restored.unread.push(record);
  }
}

/**
 * Returns the subagent's definition from the current code (RESTORATION-2). `problem`: the reason why the current code
 * has no definition. The definition that is returned is then a placeholder that does nothing.
 */
function definitionOf(
  host: SubagentHost,
  spawned: SpawnedEvent,
  parent: SubagentRecord | null,
  ports: ScopePorts,
): {
  readonly definition: SubagentDefinition;
  readonly denied: ReadonlySet<string>;
  readonly problem: string | null;
} {
  const { name, grant } = spawned;
  const granter = granterOf(parent, ports, spawned.agentName);
  const nothing = (problem: string) => ({
    definition: checkSubagentConfig({ name, instructions: '' }, name),
    denied: granter.denied,
    problem,
  });
  if (spawned.parentId !== null && parent === null)
    return nothing(`${spawned.parentId}, which it worked for, is not in the journal`);
  try {
    const config = configOf(spawned, granter, ports);
    if (!config)
      return nothing(
        `There is no configuration "${name}" (${spawned.task.toolName}) any more: expected one as it was spawned with`,
      );
    const granted = grantTools(sourceOf(config), grant ?? undefined, granter);
    if (!granted.ok) return nothing(granted.error.message);
    const kept = host.keptAs(granted.config, parent, ports);
    const definition = checkSubagentConfig(kept, kept.name);
    return { definition, denied: granted.denied, problem: null };
  } catch (error) {
    return nothing(messageOf(error));
  }
}

function endingOf({ status, steps, error }: Outcome): Ending {
  return { status, steps, ...(error && { error }) };
}

/**
 * Finds the configuration: through the recipe of the tool that spawned the subagent, through the tool that runs such
 * subagents, or by name.
 */
function configOf(
  { name, task, recipe }: SpawnedEvent,
  granter: Granter,
  ports: ScopePorts,
): SubagentConfig | undefined {
  const tools = Object.values(granter.tools);
  const problems: unknown[] = [];
  for (const tool of recipe === null ? [] : tools)
    try {
      const made = reconfigureOf(tool)?.(recipe);
      if (made) return made;
    } catch (error) {
      // Another tool of this kind may recognise the names.
      problems.push(error);
    }
  if (problems.length > 0) throw problems[0];
  for (const tool of tools) {
    const config = subagentOf(tool);
    if (config?.name === name) return config;
  }
  return ports.configOf?.(task.toolName, name);
}
