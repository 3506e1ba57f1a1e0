// What a subagent knows from its entries beside its machine and its log: which calls the user denied
// it, and the latest messages that it was told. What is asked or sent again, after a crash, is known by that.
//
// Does not: decide what follows from it.

import { askOf } from '../../machines/subagent-calls.ts';
import { callKey } from '../model/approval.ts';
import type { SubagentLife } from './subagent-life.ts';
import type { SubagentUnitEvent } from './subagent-ports.ts';

/** Who sends one twice does so soon. */
const MAX_TAKEN = 100;

/** As plain JSON. */
export interface KnownRest {
  /** Calls that the user denied it, by their keys. @defaultValue none */
  readonly denied?: readonly string[];
  /** The latest messages that it was told, by their ids, the oldest first. @defaultValue none */
  readonly taken?: readonly string[];
}

export class KnownFacts {
  readonly #denied: Set<string>;
  readonly #taken: Set<string>;

  constructor({ denied, taken }: KnownRest = {}) {
    this.#denied = new Set(denied);
    this.#taken = new Set(taken);
  }

  get rest(): KnownRest {
    const denied = [...this.#denied];
    const taken = [...this.#taken];
    return { ...(denied.length > 0 && { denied }), ...(taken.length > 0 && { taken }) };
  }

  /** Those below it need not ask again. */
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

/** The call that the user denies with this event, before the machine has seen it. */
export function deniedBy(event: SubagentUnitEvent, { actor, log }: SubagentLife) {
  if (event.type !== 'question.answered' || event['approved'] !== false) return undefined;
  const asking = askOf(actor.getSnapshot().context.calls);
  return asking?.kind === 'approval' ? log.call(asking.callId) : undefined;
}
