// Interns equal values: events, packets, choices and ghost values. So worlds share their common parts, and
// `===` and small numbers distinguish them.

import type { AnyEventObject } from 'xstate';
import { canonical } from './plain-data.ts';
import type { Timer } from './pending.ts';
import type { Choice, GhostCell, Packet } from './world-node.ts';

export class Pool {
  readonly #ids: readonly string[];
  readonly #packets = new Map<string, Packet>();
  readonly #choices = new Map<string, Choice>();
  readonly #deliveries = new WeakMap<Packet, Choice>();
  readonly #ghosts = new Map<string, GhostCell>();

  constructor(ids: readonly string[]) {
    this.#ids = ids;
  }

  packet(sender: number, receiver: number, event: AnyEventObject, repeated = false): Packet {
    const from = this.#ids[sender] ?? '';
    const to = this.#ids[receiver] ?? '';
    const eventKey = canonical(event, `a message from "${from}" to "${to}"`);
    const channel = sender * this.#ids.length + receiver;
    return made(this.#packets, `${channel}${repeated ? 'r' : ''} ${eventKey}`, (number) => ({
      number,
      from,
      to,
      event,
      sender,
      receiver,
      channel,
      eventKey,
      repeated,
    }));
  }

  /** The packet as it stays in its channel after its first delivery. */
  repeated({ sender, receiver, event }: Packet): Packet {
    return this.packet(sender, receiver, event, true);
  }

  delivery(packet: Packet): Choice {
    let choice = this.#deliveries.get(packet);
    if (choice === undefined) {
      choice = { ...aboutPacket(packet), kind: 'message' };
      this.#deliveries.set(packet, choice);
    }
    return choice;
  }

  /** The delivery of a packet that will be delivered again. */
  repeat(packet: Packet): Choice {
    return made(this.#choices, `repeat ${packet.number}`, () => ({
      ...aboutPacket(packet),
      kind: 'repeat',
    }));
  }

  environment(actor: number, event: AnyEventObject): Choice {
    const eventKey = canonical(event, `an event for "${this.#ids[actor] ?? ''}"`);
    return made(this.#choices, `event ${actor} ${eventKey}`, () => ({
      kind: 'environment',
      actor,
      event,
      eventKey,
    }));
  }

  timer(actor: number, { id, event }: Timer): Choice {
    const eventKey = canonical(event, `a delayed event of "${this.#ids[actor] ?? ''}"`);
    return made(this.#choices, `timer ${actor} ${id ?? ''} ${eventKey}`, () => ({
      kind: 'timer',
      actor,
      event,
      eventKey,
    }));
  }

  ghost(value: unknown): GhostCell {
    return made(this.#ghosts, canonical(value, 'the ghost'), (number) => ({ number, value }));
  }
}

function aboutPacket(packet: Packet): Omit<Choice, 'kind'> {
  const { receiver, event, eventKey } = packet;
  return { actor: receiver, event, eventKey, packet };
}

/** Returns the value of that name, made on first use with its number. */
function made<T>(values: Map<string, T>, name: string, make: (number: number) => T): T {
  let value = values.get(name);
  if (value === undefined) values.set(name, (value = make(values.size)));
  return value;
}
