// A run with an id: it outlives the process that began it. Whoever runs the same id again goes on with
// it from its last step, or has what it came to. It is a service of its own, with one subagent.
//
// Owns:     which ids run in this process.
// Does not: anything that a service does (delegation/owned-service.ts).
//
// Invariants
//   KR1. One id is one run, in however many processes: its outcome is kept under its id, for good.
//   KR2. `result` resolves once and never rejects; where the journal is not there, as `lost`, and
//        nothing of that is kept.

import { codeOf, isA, messageOf, OffstageError } from '../../errors.ts';
import { THE_LEAD } from '../delegation/service-types.ts';
import { ownedService } from '../delegation/subagent-service.ts';
import { isForGood, JournalError } from '../ports/journal-error.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { checkSubagentConfig, type SubagentConfig } from './config.ts';
import { outcomeOf } from './outcome-of.ts';
import type { Outcome } from './outcome.ts';
import type { RunSubagentOptions, SubagentRun } from './run-subagent.ts';
import { SubagentLog } from './subagent-log.ts';
import type { SubagentTask } from './subagent-ports.ts';

const running = new WeakMap<Runtime, Map<string, SubagentRun>>();

/** @throws {ConfigurationError} for a configuration that cannot work, or an id that is taken by something else. */
export function keptRun(
  id: string,
  config: SubagentConfig,
  task: SubagentTask,
  options: RunSubagentOptions,
): SubagentRun {
  const { runtime } = options;
  const runs = running.get(runtime) ?? new Map<string, SubagentRun>();
  running.set(runtime, runs);
  const known = runs.get(id);
  if (known) return known;
  checkSubagentConfig(config, config.name);
  const { onInput = () => null, onError, by, ...serviceOptions } = options;
  const { promise: settled, resolve: settle } = Promise.withResolvers<Outcome>();
  const service = ownedService({
    ...serviceOptions,
    id,
    configs: { [config.name]: config },
    // Nobody else could answer.
    onInput,
    onError: (error, where) => {
      // It goes on in another process, or nowhere. First: the handler may throw.
      if (isA(error, JournalError) && isForGood(error)) settle(lostBy(error));
      onError?.(error, where);
    },
  });
  const ended = new Promise<Outcome>((resolve) => {
    service.events.subscribe((chunk) => {
      if (chunk.type === 'ended' && chunk.parentId === null) resolve(chunk.outcome);
    });
  });
  let cancelled: string | null = null;
  const cancel = (): void => {
    if (cancelled === null) return;
    for (const { id: subagentId, parentId } of service.list(THE_LEAD))
      if (parentId === null) service.cancel(subagentId, THE_LEAD, cancelled);
  };
  const run = async (): Promise<Outcome> => {
    await service.recover();
    const receipt = service.spawn({
      config,
      task,
      caller: THE_LEAD,
      idempotencyKey: id,
      ...(by === undefined ? {} : { by }),
    });
    if (receipt.status === 'rejected') {
      const { code, message } = receipt.error;
      throw new OffstageError(code, message);
    }
    cancel();
    const all = service.list(THE_LEAD, { includeEnded: true });
    const own = all.find((report) => report.id === receipt.subagentId);
    if (own?.outcome) return own.outcome;
    const outcome = await ended;
    await new Promise<void>((resolve) => service.whenEnded(resolve));
    return outcome;
  };
  void run().catch(lostBy).then(settle);
  const result = settled.then(async (outcome) => {
    // With what it came to, for whoever runs it again.
    await service.suspend();
    runs.delete(id);
    return outcome;
  });
  const begun: SubagentRun = {
    id,
    result,
    cancel(reason = 'cancelled') {
      cancelled ??= reason;
      cancel();
    },
  };
  runs.set(id, begun);
  return begun;
}

function lostBy(error: unknown): Outcome {
  const code = codeOf(error);
  const failure = { code, message: messageOf(error), retryable: true };
  return outcomeOf({ status: 'lost', steps: 0, error: failure }, new SubagentLog());
}
