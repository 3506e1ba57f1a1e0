// The three machines that every session has: its regions, the interaction arbiter, the outbox. The unit
// passes events to them; this file begins and restores them.
//
// Owns:     the actors.
// Does not: know their messages to each other (machines/session-wiring), or the other lives of the session.

import type { AnyStateMachine, InputFrom, Snapshot } from 'xstate';
import { interactionMachine, outboxMachine, sessionMachine } from '../../../machines/index.ts';
import type { AnyUnit, Posted } from '../../runtime/commit-unit.ts';
import type { Host } from '../../runtime/host.ts';
import {
  snapshotOf,
  startHosted,
  stopHosted,
  underWay,
  withNoLimits,
  type HostedActor,
} from '../../runtime/hosting.ts';
import type { SessionInputs } from './session-inputs.ts';

/** The state of the three machines, as plain JSON. */
export interface MachinesSnapshot {
  readonly session: Snapshot<unknown>;
  readonly interaction: Snapshot<unknown>;
  readonly outbox: Snapshot<unknown>;
}

export class SessionMachines {
  readonly #unit: AnyUnit;
  readonly #host: Host;
  session!: HostedActor<typeof sessionMachine>;
  interaction!: HostedActor<typeof interactionMachine>;
  outbox!: HostedActor<typeof outboxMachine>;

  constructor(unit: AnyUnit, host: Host) {
    this.#unit = unit;
    this.#host = host;
  }

  /** Begins the machines. */
  begin({ session, outbox }: SessionInputs): void {
    this.session = this.#start(sessionMachine, 'session', { input: session });
    this.interaction = this.#start(interactionMachine, 'interaction', {});
    this.outbox = this.#start(outboxMachine, 'outbox', { input: outbox });
  }

  toSnapshot(): MachinesSnapshot {
    const { session, interaction, outbox } = this;
    return {
      session: snapshotOf(session),
      interaction: snapshotOf(interaction),
      outbox: snapshotOf(outbox),
    };
  }

  /** Restores the machines from the state that `rest` returned, instead of beginning with these inputs. */
  restore({ session, interaction, outbox }: MachinesSnapshot, inputs: SessionInputs): void {
    this.session = this.#start(sessionMachine, 'session', {
      snapshot: withNoLimits(session, sessionMachine, inputs.session),
    });
    this.interaction = this.#start(interactionMachine, 'interaction', { snapshot: interaction });
    this.outbox = this.#start(outboxMachine, 'outbox', {
      snapshot: withNoLimits(outbox, outboxMachine, inputs.outbox),
    });
  }

  /** The activities and deadlines under way. */
  get underWay(): readonly Posted[] {
    return [
      ...underWay('session', sessionMachine, this.session.getSnapshot()),
      ...underWay('interaction', interactionMachine, this.interaction.getSnapshot()),
      ...underWay('outbox', outboxMachine, this.outbox.getSnapshot()),
    ];
  }

  stop(): void {
    stopHosted(this.session);
    stopHosted(this.interaction);
    stopHosted(this.outbox);
  }

  #start<M extends AnyStateMachine>(
    machine: M,
    name: string,
    from: { readonly input?: InputFrom<M>; readonly snapshot?: Snapshot<unknown> },
  ): HostedActor<M> {
    const { id } = this.#unit;
    const { input, ...snapshot } = from;
    const postbox = { post: (effect: Posted['effect']) => this.#unit.post(name, effect) };
    return startHosted(machine, input, postbox, {
      // The session is the unit; the other machines belong to it.
      id: name === 'session' ? id : `${id}/${name}`,
      inspect: this.#host.inspect,
      ...snapshot,
    });
  }
}
