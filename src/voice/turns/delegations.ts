// Delegations of a voice model that knows no tools by name: the model says that something is to be done, and
// the session derives the meant calls from the conversation.
//
//   created ─▶ the user's words settle ─▶ worked out ─┬─▶ calls, as if the model had made them
//      │              │                       │       ├─▶ an answer to say
//      │              └─ for a subagent: nothing       └─▶ failed: the model says so
//      └─ the connection is lost, the session is closed: aborted, forgotten
//
// Owns:     the delegations that are not interpreted yet.
// Does not: know how they are interpreted (delegation-step), or run the calls (session).
//
// Invariants
//   DELEGATIONS-1. Each delegation is answered once (`delegation.accept` or `delegation.answer`), or
//       forgotten with its connection; no later connection hears of it.
//   DELEGATIONS-2. The lead agent does not repeat a task that the user gave to a subagent.
//   DELEGATIONS-3. Each delegation ends: the words are awaited for at most `settleTimeoutMs`, the model for
//       `timeoutMs`.
//   DELEGATIONS-4. The model learns which calls are meant before any of them is answered.

import { CancelledError, ProviderError } from '../../values/errors.ts';
import type { LeadSession } from '../../actors/session/lead/lead-session.ts';
import { Watchdog } from '../../actors/session/lead/watchdog.ts';
import type { WorkOut } from './delegation-step.ts';
import type { MadeCall } from './lead-calls.ts';
import { RecentIds } from '../audio/recent-ids.ts';
import type { TransportCommand } from '../connection/transport.ts';

export interface DelegationsPorts {
  send(command: TransportCommand): void;
  /** Handles a call as if the model had named it. */
  called(call: MadeCall): void;
  /** Returns whether the user speaks or their last words are not known yet. */
  userHasFloor(): boolean;
  /** Returns the words understood so far of the unfinished utterances. */
  unfinished(): string;
  /** Reports that a delegation is no longer under way. */
  settled(): void;
}

export interface DelegationsOptions {
  readonly settleTimeoutMs: number;
  readonly timeoutMs: number;
}

const FAILED = 'Sorry, something went wrong with that. Could you say it again?';

export class Delegations {
  readonly #core: LeadSession;
  readonly #workOut: WorkOut;
  readonly #ports: DelegationsPorts;
  readonly #timeoutMs: number;
  readonly #settleTimeoutMs: number;
  readonly #patience: Watchdog;
  readonly #known = new RecentIds();
  /** The delegations that wait for the user's words. */
  readonly #waiting = new Set<string>();
  readonly #working = new Map<string, AbortController>();
  /** To whom the user's words since the last interpreted delegation were addressed. */
  #wereForLead = false;
  #wereForSubagent = false;

  constructor(
    core: LeadSession,
    workOut: WorkOut,
    ports: DelegationsPorts,
    { settleTimeoutMs, timeoutMs }: DelegationsOptions,
  ) {
    this.#core = core;
    this.#workOut = workOut;
    this.#ports = ports;
    this.#timeoutMs = timeoutMs;
    this.#settleTimeoutMs = settleTimeoutMs;
    this.#patience = new Watchdog(core.host.environment, () => this.#begin());
  }

  /** Whether a delegation is under way; the model receives no other request meanwhile. */
  get areUnderWay(): boolean {
    return this.#waiting.size > 0 || this.#working.size > 0;
  }

  created(delegationId: string): void {
    if (!this.#known.add(delegationId)) return;
    this.#waiting.add(delegationId);
    if (this.#ports.userHasFloor()) this.#patience.watch(this.#settleTimeoutMs);
    else this.#begin();
  }

  /** Records that the user's words were addressed to the lead agent, or (`false`) to a subagent. */
  understood(wereForLead: boolean): void {
    if (wereForLead) this.#wereForLead = true;
    else this.#wereForSubagent = true;
  }

  /** Continues the waiting delegations once the user has fallen silent. */
  wordsSettled(): void {
    if (this.#waiting.size > 0 && !this.#ports.userHasFloor()) this.#begin();
  }

  /** Handles the loss of the connection. Returns whether the user still waits for a delegated task. */
  lost(): boolean {
    const wereOpen = this.areUnderWay;
    this.stop();
    this.#known.clear();
    return wereOpen;
  }

  /** Cancels all delegations. */
  stop(): void {
    this.#patience.stop();
    this.#waiting.clear();
    const reason = new CancelledError('the delegation is no longer needed');
    for (const controller of this.#working.values()) controller.abort(reason);
    this.#working.clear();
  }

  #begin(): void {
    this.#patience.stop();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const delegationId of waiting) {
      // DELEGATIONS-2
      if (this.#wereForSubagent && !this.#wereForLead) this.#accept(delegationId, []);
      else void this.#work(delegationId);
    }
    this.#wereForLead = this.#wereForSubagent = false;
    this.#ports.settled();
  }

  async #work(delegationId: string): Promise<void> {
    const { environment } = this.#core.host;
    const controller = new AbortController();
    const { signal } = controller;
    this.#working.set(delegationId, controller);
    const cancel = environment.scheduler.schedule(() => {
      const message = `The model did not interpret the delegation within ${this.#timeoutMs} ms`;
      controller.abort(new ProviderError('DELEGATION_TIMEOUT', message, { retryable: true }));
    }, this.#timeoutMs);
    const isWanted = (): boolean => this.#working.get(delegationId) === controller;
    try {
      const unfinished = this.#ports.unfinished();
      const { calls, text } = await this.#workOut({ unfinished, signal });
      if (!isWanted()) return;
      if (calls.length > 0) this.#accept(delegationId, calls);
      else if (text.trim() !== '') this.#answer(delegationId, text.trim());
      else
        throw new ProviderError('NO_ANSWER', 'The model neither called a tool nor said anything');
    } catch (error) {
      if (!isWanted()) return;
      this.#core.reportError(error, 'delegation');
      this.#answer(delegationId, FAILED);
    } finally {
      cancel();
      if (isWanted()) {
        this.#working.delete(delegationId);
        this.#ports.settled();
      }
    }
  }

  #accept(delegationId: string, calls: readonly Omit<MadeCall, 'callId'>[]): void {
    const { ids } = this.#core.host.environment;
    const made = calls.map((call) => ({ ...call, callId: ids.next('call') }));
    const callIds = made.map(({ callId }) => callId);
    this.#ports.send({ type: 'delegation.accept', delegationId, callIds });
    for (const call of made) this.#ports.called(call);
  }

  #answer(delegationId: string, text: string): void {
    this.#ports.send({ type: 'delegation.answer', delegationId, text });
  }
}
