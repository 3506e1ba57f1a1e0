// The open delegations of one Live session, and the acknowledgement that the model speaks by itself when the
// client sends no text for one.

import type { Scheduler } from '../../../actors/ports/environment.ts';
import { Timers } from '../engine/timers.ts';

export interface Delegation {
  readonly callId: string;
  /** The tool that the script called; the wire does not send its name. */
  readonly name: string;
  isAnswered: boolean;
}

export class Delegations {
  readonly #all: Delegation[] = [];
  readonly #acknowledgements: Timers;

  constructor(scheduler: Scheduler) {
    this.#acknowledgements = new Timers(scheduler);
  }

  get open(): { readonly callId: string; readonly name: string }[] {
    return this.#all
      .filter(({ isAnswered }) => !isAnswered)
      .map(({ callId, name }) => ({ callId, name }));
  }

  find(callId: string): Delegation | undefined {
    return this.#all.find((delegation) => delegation.callId === callId);
  }

  add(callId: string, name: string): void {
    this.#all.push({ callId, name, isAnswered: false });
  }

  acknowledge(speak: () => void, delayMs: number): void {
    this.#acknowledgements.later(speak, delayMs);
  }

  /** Cancels the pending acknowledgement: text was appended. */
  stopAcknowledging(): void {
    this.#acknowledgements.stop();
  }
}
