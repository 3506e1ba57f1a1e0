// The API for the subagents of a session.
//
// A class, not an object with getters of its own: V8 keeps such a getter among the old objects from the
// start, and with it the session that it reads, until the next full collection.

import {
  THE_LEAD,
  type SendRequest,
  type SendResult,
  type SubagentService,
} from '../../contracts/service-types.ts';
import { checkedBy, type VouchedFor } from '../../contracts/identity.ts';
import type { SubagentView } from '../../contracts/session-views.ts';
import type { SessionCore } from '../lifecycle/session-core.ts';

/** The subagents of a session. */
export interface SessionSubagents {
  /** Lists the live subagents, and the last that ended. */
  list(): readonly SubagentView[];
  get(id: string): SubagentView | undefined;
  /** Returns the subagent that works, or worked, for a tool call of the lead agent. */
  ofCall(callId: string): SubagentView | undefined;
  /** Returns the subagent that asked this question. */
  ofQuestion(requestId: string): SubagentView | undefined;
  /** Number of live subagents. */
  readonly activeCount: number;
  /**
   * Cancels a subagent. False if it has ended, or never existed.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`, {CapacityError} `MAILBOX_FULL`.
   */
  cancel(id: string, reason?: string, options?: VouchedFor): boolean;
  /**
   * Sends a subagent a message, or answers its request to the lead agent.
   * @throws {ConfigurationError} `INVALID_ARGUMENT`
   */
  send(id: string, message: SendRequest, options?: VouchedFor): SendResult;
  /** The service of the subagents, with waits, progress, streams and more; the app calls it as `THE_LEAD`. */
  readonly service: SubagentService;
}

export class SubagentsOfSession implements SessionSubagents {
  readonly #core: Pick<SessionCore, 'projection' | 'delegation' | 'user'>;

  constructor(core: Pick<SessionCore, 'projection' | 'delegation' | 'user'>) {
    this.#core = core;
  }

  list(): readonly SubagentView[] {
    return this.#core.projection.subagents();
  }

  get(id: string): SubagentView | undefined {
    return this.#core.projection.subagent(id);
  }

  ofCall(callId: string): SubagentView | undefined {
    return this.list().find((view) => view.callId === callId);
  }

  ofQuestion(requestId: string): SubagentView | undefined {
    return this.get(this.#core.projection.question(requestId)?.subagentId ?? '');
  }

  get activeCount(): number {
    return this.list().filter(({ endedAt }) => endedAt === null).length;
  }

  cancel(id: string, reason = 'the user cancelled it', options: VouchedFor = {}): boolean {
    const by = this.#by('subagents.cancel(id, reason, options)', options);
    return this.#core.delegation.cancel(id, THE_LEAD, reason, by);
  }

  send(id: string, message: SendRequest, options: VouchedFor = {}): SendResult {
    const by = this.#by('subagents.send(id, message, options)', options);
    return this.#core.delegation.send(id, message, THE_LEAD, by);
  }

  #by(where: string, options: VouchedFor): VouchedFor {
    const by = checkedBy(where, options) ?? this.#core.user;
    return by === undefined ? {} : { by };
  }

  get service(): SubagentService {
    return this.#core.delegation;
  }
}
