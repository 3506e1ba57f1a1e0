// Facts of a subagent's entries beside its machine and its log: the calls that the user denied, and the ids
// of the latest messages. They identify a question or message that is repeated after a crash.
//
// Does not: decide what follows from it.
import { callKey } from '../model/approval.ts';
import type { SubagentLife } from './subagent-life.ts';
import type { SubagentUnitEvent } from './subagent-ports.ts';
import { askOf } from '../../machines/subagent-setup.ts';

/** Ids that are kept: a repeated message comes soon after the first. */
const MAX_TAKEN = 100;

/** The facts as plain JSON. */
export interface KnownFactsSnapshot {
  /** Keys of the calls that the user denied. @defaultValue none */
  readonly denied?: readonly string[];
  /** Ids of the latest messages, the oldest first. @defaultValue none */
  readonly taken?: readonly string[];
}

export class KnownFacts {
  readonly #denied: Set<string>;
  readonly #taken: Set<string>;

  constructor({ denied, taken }: KnownFactsSnapshot = {}) {
    this.#denied = new Set(denied);
    this.#taken = new Set(taken);
  }

  toSnapshot(): KnownFactsSnapshot {
    const denied = [...this.#denied];
    const taken = [...this.#taken];
    return { ...(denied.length > 0 && { denied }), ...(taken.length > 0 && { taken }) };
  }

  /** Tells whether the user denied this call; the subagents below need not ask again. */
  hasDenied(toolName: string, input: unknown): boolean {
    return this.#denied.has(callKey(toolName, input));
  }

  hasTaken(messageId: string): boolean {
    return this.#taken.has(messageId);
  }

  denied(toolName: string, input: unknown): void {
    this.#denied.add(callKey(toolName, input));
  }

  taken(messageId: string): void {
    this.#taken.add(messageId);
    const [oldest] = this.#taken;
    if (this.#taken.size > MAX_TAKEN && oldest !== undefined) this.#taken.delete(oldest);
  }
}

/** Returns the call that the user denies with this event, before the machine has applied it. */
export function deniedBy(event: SubagentUnitEvent, { actor, log }: SubagentLife) {
  if (event.type !== 'question.answered' || event.approved !== false) return undefined;
  const asking = askOf(actor.getSnapshot().context.calls);
  return asking?.kind === 'approval' ? log.call(asking.callId) : undefined;
}
