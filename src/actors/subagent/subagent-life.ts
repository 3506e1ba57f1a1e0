// The actor and the log of a subagent, as long as something goes on; while it only waits,
// one string instead. Ten thousand that wait are ten thousand strings.
//
// Owns:     the actor, the log, and which of the two forms they have at the moment.
// Does not: know when it may be put away (the subagent does).
//
// Invariants
//   F1. What is put away comes back as it was: the same state, the same log.

import type { Actor, Snapshot } from 'xstate';
import { subagentMachine, type SubagentInput } from '../../machines/index.ts';
import { restOf, startHosted, type HostOptions, type Postbox } from '../runtime/hosting.ts';
import { SubagentLog, type LogRecord } from './subagent-log.ts';

interface Live {
  readonly actor: Actor<typeof subagentMachine>;
  readonly log: SubagentLog;
}

/** As JSON; what a log holds is plain JSON, and so is what the machine holds. */
interface Parked {
  readonly snapshot: Snapshot<unknown>;
  readonly log: LogRecord;
}

export class SubagentLife {
  readonly #id: string;
  readonly #postbox: Postbox;
  readonly #isInspected: boolean;
  #form: Live | string;

  constructor(input: SubagentInput, postbox: Postbox, hosting: Omit<HostOptions, 'snapshot'>) {
    this.#id = input.id;
    this.#postbox = postbox;
    this.#isInspected = hosting.inspect !== undefined;
    const actor = startHosted(subagentMachine, input, postbox, hosting);
    this.#form = { actor, log: new SubagentLog() };
  }

  get isParked(): boolean {
    return typeof this.#form === 'string';
  }

  get actor(): Live['actor'] {
    return this.#awake.actor;
  }

  get log(): SubagentLog {
    return this.#awake.log;
  }

  /** Puts it away until somebody asks for its actor or log. An inspected one stays as it is. */
  park(): void {
    if (typeof this.#form === 'string' || this.#isInspected) return;
    const { actor, log } = this.#form;
    const parked: Parked = { snapshot: restOf(actor), log: log.record };
    this.#form = JSON.stringify(parked);
    actor.stop();
  }

  get #awake(): Live {
    if (typeof this.#form !== 'string') return this.#form;
    const { snapshot, log } = JSON.parse(this.#form) as Parked;
    // Its name in the inspector is not kept: an inspected one is never put away.
    const hosting = { id: this.#id, snapshot };
    const actor = startHosted(subagentMachine, undefined, this.#postbox, hosting);
    this.#form = { actor, log: new SubagentLog(log) };
    return this.#form;
  }
}
