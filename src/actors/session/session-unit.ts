// The commit unit of a session: its machines, wired to each other. The session's
// regions, the interaction arbiter, the outbox, the questions and the tool calls see
// one event at a time, and what they tell each other happens in the same transaction.
//
// Owns:     which effect of which machine is which event of which other one.
// Does not: hold words and results (records), speak (lead), run subagents.
//
// Invariants
//   U1. An accepted answer, the release of the floor and the next grant are one transaction.
//   U2. The gate of the outbox is told in the transaction that changes it.
//   U3. Words of the user go to exactly one: the owner's question or the lead agent.

import type { Actor, AnyMachineSnapshot } from 'xstate';
import {
  gateIsOpen,
  hasRoom,
  interactionMachine,
  outboxMachine,
  ownerOf,
  questionMachine,
  sessionMachine,
  toolCallMachine,
  type OutboxInput,
  type OutboxItem,
  type SessionInput,
  type Stamped,
} from '../../machines/index.ts';
import {
  CommitUnit,
  type Message,
  type Posted,
  type UnitBody,
  type UnitEvent,
} from '../runtime/commit-unit.ts';
import type { Host } from '../runtime/host.ts';
import { startHosted } from '../runtime/hosting.ts';
import { Population } from '../runtime/population.ts';

/** Raised when a machine or the meaning of a machine's effects changes: entries are not refolded across. */
const DEFINITION_VERSION = 1;

export interface SessionUnitOptions {
  readonly id: string;
  readonly session: SessionInput;
  readonly outbox: OutboxInput;
  readonly toolTimeoutMs: number;
  /** Can what the lead agent is saying be stopped in mid-sentence? */
  readonly canInterrupt: boolean;
}

/** What the rest of the session does for its unit. Nothing here may call back into the unit's machines. */
export interface SessionUnitPorts {
  /** Takes in an event that brings words or creates a life; returns what follows within the unit. */
  fold(actor: string, event: UnitEvent & Stamped): readonly Message[];
  /** An item for the outbox. */
  itemOf(deliveryId: string): OutboxItem;
  /** Carries an effect out, after the commit. */
  release(posted: Posted): void;
  crashed(error: unknown): void;
}

export class SessionUnit implements UnitBody {
  readonly unit: CommitUnit;
  readonly questions: Population;
  readonly calls: Population;
  readonly #ports: SessionUnitPorts;
  readonly #canInterrupt: boolean;
  readonly #toolTimeoutMs: number;
  #session!: Actor<typeof sessionMachine>;
  #interaction!: Actor<typeof interactionMachine>;
  #outbox!: Actor<typeof outboxMachine>;
  #gate = '';

  constructor(host: Host, options: SessionUnitOptions, ports: SessionUnitPorts) {
    this.#ports = ports;
    this.#canInterrupt = options.canInterrupt;
    this.#toolTimeoutMs = options.toolTimeoutMs;
    this.unit = new CommitUnit(options.id, DEFINITION_VERSION, host, this);
    this.questions = new Population(questionMachine, 'question', this.unit, host);
    this.calls = new Population(toolCallMachine, 'call', this.unit, host);
    this.unit.start(() => {
      const { inspect } = host;
      const postbox = (actor: string) => ({
        post: (effect: Posted['effect']) => this.unit.post(actor, effect),
      });
      this.#session = startHosted(sessionMachine, options.session, postbox('session'), {
        id: options.id,
        inspect,
      });
      this.#interaction = startHosted(interactionMachine, undefined, postbox('interaction'), {
        id: `${options.id}/interaction`,
        inspect,
      });
      this.#outbox = startHosted(outboxMachine, options.outbox, postbox('outbox'), {
        id: `${options.id}/outbox`,
        inspect,
      });
    });
  }

  /** The XState actor of the session itself, for `useSelector` and the inspector. */
  get session(): Actor<typeof sessionMachine> {
    return this.#session;
  }

  get outbox(): Actor<typeof outboxMachine> {
    return this.#outbox;
  }

  /** The question that owns what the user says, or null. */
  get owner(): string | null {
    return ownerOf(this.#interaction.getSnapshot());
  }

  /** May another result be promised? */
  get hasRoomForResult(): boolean {
    return hasRoom(this.#outbox.getSnapshot().context);
  }

  stop(): void {
    this.unit.dispose();
    this.questions.stop();
    this.calls.stop();
    this.#session.stop();
    this.#interaction.stop();
    this.#outbox.stop();
  }

  accepts(actor: string, event: UnitEvent & Stamped): boolean {
    const [kind, id] = split(actor);
    switch (kind) {
      case 'session':
        return can(this.#session, event);
      case 'interaction':
        return can(this.#interaction, event);
      case 'outbox':
        return can(this.#outbox, event);
      case 'question':
        return this.questions.accepts(id, event);
      case 'call':
        return this.calls.accepts(id, event);
      // Words: whether they mean anything is for the fold to say.
      default:
        return true;
    }
  }

  apply(actor: string, event: UnitEvent & Stamped): void {
    const [kind, id] = split(actor);
    const follow = this.#ports.fold(actor, event);
    switch (kind) {
      case 'session':
        send(this.#session, event);
        // The outbox and the open question share these facts with the session.
        if (event.type === 'client.attached' || event.type === 'client.detached') {
          this.#within([
            { actor: 'outbox', event },
            ...(this.owner === null ? [] : [{ actor: `question:${this.owner}`, event }]),
          ], event.at);
        }
        if (event.type === 'utterance.ended') this.#within([{ actor: 'outbox', event }], event.at);
        break;
      case 'interaction':
        send(this.#interaction, event);
        break;
      case 'outbox':
        send(this.#outbox, event);
        break;
      case 'question':
        this.questions.apply(id, event);
        break;
      case 'call':
        this.calls.apply(id, event);
        break;
      case 'questions': {
        const { requestId, timeoutMs } = event as unknown as {
          requestId: string;
          timeoutMs: number;
        };
        if (this.questions.has(requestId)) break;
        this.questions.create(requestId, { requestId, timeoutMs });
        this.#within(
          [{ actor: 'interaction', event: { type: 'interaction.request', id: requestId } as UnitEvent }],
          event.at,
        );
        break;
      }
      case 'calls': {
        const { callId } = event as unknown as { callId: string };
        if (this.calls.has(callId)) break;
        this.calls.create(callId, { callId, timeoutMs: this.#toolTimeoutMs });
        break;
      }
      default:
        break;
    }
    this.#within(follow, event.at);
    // Not every change of state says something; screens show it all the same.
    if (kind === 'session' || kind === 'question')
      this.unit.post(actor, { kind: 'do', name: 'changed', params: undefined });
  }

  /** Effects that are messages to another machine of this unit. All others go out. */
  route({ actor, effect }: Posted): readonly Message[] {
    if (effect.kind !== 'do') return [];
    const params = (effect.params ?? {}) as RoutedParams;
    switch (`${split(actor)[0]}.${effect.name}`) {
      case 'question.present':
        return [to('outbox', { type: 'outbox.add', item: this.#ports.itemOf(params.requestId) })];
      case 'question.retract':
        return [to('outbox', { type: 'outbox.retract', deliveryId: params.requestId })];
      case 'question.release':
        return [
          to('interaction', {
            type: 'interaction.release',
            id: params.requestId,
            epoch: params.epoch,
          }),
        ];
      case 'interaction.grant':
        return [
          to(`question:${params.id}`, { type: 'question.granted', epoch: params.epoch }),
        ];
      case 'interaction.revoke':
        return [
          to(`question:${params.id}`, { type: 'question.withdraw', reason: 'revoked' }),
        ];
      case 'outbox.begun':
        return [to(`question:${params.deliveryId}`, { type: 'question.playing' })];
      case 'outbox.delivered':
        return [
          to(`question:${params.deliveryId}`, { type: 'question.heard' }),
          to(`call:${params.deliveryId}`, { type: 'delivery.settled' }),
        ];
      case 'outbox.dismissed':
        return [to(`call:${params.deliveryId}`, { type: 'delivery.settled' })];
      case 'call.deliver':
        return [to('outbox', { type: 'outbox.add', item: this.#ports.itemOf(params.callId) })];
      default:
        return [];
    }
  }

  settle(): readonly Message[] {
    const snapshot = this.#session.getSnapshot();
    const isOpen = gateIsOpen(snapshot);
    const speaking =
      snapshot.matches({ model: 'generating' }) || snapshot.matches({ playout: 'playing' });
    const interruptible =
      !isOpen && this.#canInterrupt && speaking && snapshot.matches({ user: 'silent' });
    const gate = isOpen ? 'open' : interruptible ? 'interruptible' : 'closed';
    if (gate === this.#gate) return [];
    this.#gate = gate;
    return [
      to('outbox', isOpen ? { type: 'gate.opened' } : { type: 'gate.closed', interruptible }),
    ];
  }

  release(posted: Posted): void {
    this.#ports.release(posted);
  }

  crashed(error: unknown): void {
    this.#ports.crashed(error);
  }

  #within(messages: readonly Message[], at: number): void {
    for (const { actor, event } of messages) {
      const stamped = { ...event, at };
      if (this.accepts(actor, stamped)) this.apply(actor, stamped);
    }
  }
}

/** What the routed effects carry, together. */
interface RoutedParams {
  readonly requestId: string;
  readonly deliveryId: string;
  readonly callId: string;
  readonly id: string;
  readonly epoch: number;
}

function to(actor: string, event: UnitEvent & Record<string, unknown>): Message {
  return { actor, event };
}

/** `question:abc:1` is the question `abc:1`. */
function split(actor: string): [kind: string, id: string] {
  const colon = actor.indexOf(':');
  return colon < 0 ? [actor, ''] : [actor.slice(0, colon), actor.slice(colon + 1)];
}

function can(actor: { getSnapshot(): unknown }, event: UnitEvent): boolean {
  const snapshot = actor.getSnapshot() as AnyMachineSnapshot;
  return snapshot.status === 'active' && snapshot.can(event);
}

function send(actor: { getSnapshot(): unknown; send(event: never): void }, event: UnitEvent): void {
  actor.send(event as never);
  const snapshot = actor.getSnapshot() as AnyMachineSnapshot;
  if (snapshot.status === 'error') throw snapshot.error;
}
