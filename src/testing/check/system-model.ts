// Models a system of machines as a function: for a world, it returns the possible choices, and the world to which each
// choice leads. It does not know the graph that is being explored. Equal values are stored only once, so worlds share
// their common parts and can be compared with `===` and small numbers.
//
// Invariants
//   SYSTEM-MODEL-1. `sync`: one step and all deliveries that it causes, in sending order, form one transition.
//   SYSTEM-MODEL-2. `async`: each channel (sender, receiver) preserves the order of its messages, and channels do not
//       wait for each other. Two worlds are the same if they differ only in the relative order of packets in different
//       channels.
//   SYSTEM-MODEL-3. The environment and timers act only while fewer than `maxInFlight` packets are in flight, but a
//       delivery is always possible.

import type { AnyEventObject } from 'xstate';
import { CapacityError, ConfigurationError } from '../../values/errors.ts';
import { placeholders } from './inert.ts';
import { canonical, show } from './plain-data.ts';
import { PureActor, type ActorState, type Move } from './pure-actor.ts';
import type { Effect, Machines, Message, Step, StepKind, SystemCheck } from './types.ts';
import { WorldNode, type Choice, type Packet, type GhostCell } from './world-node.ts';
import type { Timer } from './pending.ts';

/** A system of arbitrary machines. */
export type AnySystem = SystemCheck<Machines, unknown>;

/** One event that an actor handled. A transition of a `sync` system consists of several events. */
export interface Happening {
  readonly step: Step;
  readonly before: WorldNode;
  readonly after: WorldNode;
  /** The value that was thrown, if the outcome is `threw`. Nothing follows it. */
  readonly cause?: unknown;
}

/** The maximum number of deliveries after one `sync` step. A system that needs more never settles. */
const maxDeliveries = 10_000;

export class SystemModel {
  readonly ids: readonly string[];
  readonly actors: readonly PureActor[];
  readonly #system: AnySystem;
  readonly #maxInFlight: number;
  readonly #indexOf: ReadonlyMap<string, number>;
  readonly #pool: Pool;

  constructor(system: AnySystem) {
    this.#system = system;
    this.ids = Object.keys(system.actors);
    this.#indexOf = new Map(this.ids.map((id, index) => [id, index]));
    this.#pool = new Pool(this.ids);
    this.#maxInFlight = system.mode === 'sync' ? Infinity : (system.maxInFlight ?? 2);
    const options = { timers: system.timers ?? true, peers: placeholders(this.ids) };
    this.actors = Object.entries(system.actors).map(
      ([id, definition]) => new PureActor(id, definition, options),
    );
  }

  /** Returns the first steps of all actors. In a `sync` system, these include the deliveries that they cause. */
  start(): readonly Happening[] {
    const moves = this.actors.map((actor) => actor.begin());
    const states = moves.map((move) => move.next);
    let world = new WorldNode(this.ids, states, [], this.#pool.ghost(this.#system.ghost?.initial));
    const happenings: Happening[] = [];
    for (const [index, move] of moves.entries()) {
      const event = { type: 'xstate.init', input: this.#definition(index).input };
      const started = this.#happen(world, index, event, 'start', move, states, world.inFlight);
      happenings.push(started);
      if (move.outcome === 'threw') return happenings;
      world = started.after;
    }
    return this.#settled(happenings);
  }

  /**
   * Returns the possible choices. An environment event that its actor does not handle is not a choice; it is passed to
   * `missed` instead.
   */
  choices(world: WorldNode, missed: (choice: Choice, move: Move) => void): readonly Choice[] {
    const choices: Choice[] = [];
    if (this.environmentMayAct(world)) {
      for (const [index, state] of world.states.entries()) {
        if (state.snapshot.status !== 'active') continue;
        for (const event of this.#external(world, index)) {
          const choice = this.#pool.environment(index, event);
          const actor = this.actorAt(index);
          if (!actor.isPossible(state, choice.event)) continue;
          const move = actor.take(state, choice.event, choice.eventKey);
          if (move.outcome === 'taken' || move.outcome === 'threw') choices.push(choice);
          else missed(choice, move);
        }
        for (const timer of state.timers) {
          choices.push(this.#pool.timer(index, timer));
        }
      }
    }
    let channel = -1;
    for (const packet of world.inFlight) {
      if (packet.channel === channel) continue;
      channel = packet.channel;
      choices.push(this.#pool.delivery(packet));
      if (!packet.repeated && this.#mayRepeat(packet)) {
        choices.push(this.#pool.repeat(packet));
      }
    }
    return choices;
  }

  /** Applies a choice. In a `sync` system, also applies all deliveries that follow from it. */
  apply(world: WorldNode, choice: Choice): readonly Happening[] {
    const first = this.#take(world, choice);
    return this.#system.mode === 'sync' ? this.#settled([first]) : [first];
  }

  /** The step in which an actor does not handle an event. */
  missedStep(choice: Choice, move: Move): Step {
    const actor = this.ids[choice.actor] ?? '';
    const { kind, event } = choice;
    return { actor, event, kind, outcome: move.outcome, effects: [], sent: [] };
  }

  /** Returns a key that no other world has. */
  keyOf(world: WorldNode): string {
    const { key } = this.#system;
    let name = '';
    if (key !== undefined) {
      for (const state of world.states) name += `${state.life},`;
      return name + canonical(key(world), 'the key of the world');
    }
    for (const state of world.states) name += `${state.keyNumber},`;
    for (const packet of world.inFlight) name += `>${packet.number}`;
    return world.cell.number === 0 ? name : `${name}|${world.cell.number}`;
  }

  environmentMayAct(world: WorldNode): boolean {
    return world.inFlight.length < this.#maxInFlight;
  }

  actorAt(index: number): PureActor {
    const actor = this.actors[index];
    if (actor === undefined) throw new RangeError(`No actor ${index}`);
    return actor;
  }

  #definition(index: number): AnySystem['actors'][string] {
    const definition = this.#system.actors[this.ids[index] ?? ''];
    if (definition === undefined) throw new RangeError(`No actor ${index}`);
    return definition;
  }

  #external(world: WorldNode, index: number): readonly AnyEventObject[] {
    const id = this.ids[index] ?? '';
    const events: readonly AnyEventObject[] = this.#system.external?.(world, id) ?? [];
    if (!Array.isArray(events) || events.some((event) => typeof event?.type !== 'string')) {
      throw new ConfigurationError(
        'INVALID_EVENTS',
        `Expected the external events of "${id}" to be a list of { type, … }, got ${show(events)}`,
      );
    }
    return events;
  }

  #take(world: WorldNode, choice: Choice): Happening {
    const actor = this.actorAt(choice.actor);
    let state = stateAt(world, choice.actor);
    let { inFlight } = world;
    const { packet, kind, event, eventKey } = choice;
    if (kind === 'timer') {
      const timer = state.timers.find((armed) => this.#pool.timer(choice.actor, armed) === choice);
      if (timer !== undefined) state = actor.withoutTimer(state, timer);
    } else if (packet !== undefined) {
      const index = inFlight.indexOf(packet);
      inFlight =
        kind === 'repeat'
          ? inFlight.with(index, this.#pool.repeated(packet))
          : inFlight.toSpliced(index, 1);
    }
    const move = actor.take(state, event, eventKey);
    const states = world.states.with(choice.actor, move.next);
    return this.#happen(world, choice.actor, event, kind, move, states, inFlight, packet?.from);
  }

  #settled(happenings: Happening[]): readonly Happening[] {
    if (this.#system.mode !== 'sync') return happenings;
    for (let count = 0; ; count++) {
      const last = happenings.at(-1);
      const next = last?.after.inFlight[0];
      if (last === undefined || next === undefined || last.cause !== undefined) return happenings;
      if (count === maxDeliveries) {
        throw new CapacityError(
          'NEVER_SETTLES',
          `Expected the messages that one event causes to come to an end, got ${maxDeliveries} ` +
            `deliveries after ${show(happenings[0]?.step.event)}, the last to "${next.to}": ${show(next.event)}`,
        );
      }
      happenings.push(this.#take(last.after, this.#pool.delivery(next)));
    }
  }

  #happen(
    before: WorldNode,
    index: number,
    event: AnyEventObject,
    kind: StepKind,
    move: Move,
    states: readonly ActorState[],
    inFlight: readonly Packet[],
    from?: string,
  ): Happening {
    const actor = this.ids[index] ?? '';
    let after = new WorldNode(this.ids, states, inFlight, before.cell);
    const sent: Packet[] = [];
    for (const effect of move.effects) sent.push(...this.#messages(index, effect, after));
    if (sent.length > 0) {
      const packets =
        this.#system.mode === 'sync' ? [...inFlight, ...sent] : insert(inFlight, sent);
      after = new WorldNode(this.ids, states, packets, before.cell);
    }
    const { outcome, effects, cause } = move;
    const step: Step = {
      actor,
      event,
      kind,
      from,
      outcome,
      effects,
      sent,
    };
    const { ghost } = this.#system;
    if (ghost !== undefined && outcome !== 'threw') {
      const value = ghost.next(before.cell.value, step, before, after);
      if (value !== before.cell.value) {
        after = new WorldNode(this.ids, states, after.inFlight, this.#pool.ghost(value));
      }
    }
    if (outcome !== 'threw') return { step, before, after };
    return { step, before, after, cause: cause ?? new Error('undefined was thrown') };
  }

  #messages(sender: number, effect: Effect, world: WorldNode): readonly Packet[] {
    const from = this.ids[sender] ?? '';
    if (effect.type === 'xstate.sendTo') {
      const { to, event, delayMs } = effect.params as Message & { readonly delayMs?: number };
      const receiver = this.#indexOf.get(to);
      if (receiver !== undefined) {
        return delayMs === undefined ? [this.#pool.packet(sender, receiver, event)] : [];
      }
    }
    const routed = this.#system.route?.(from, effect as Step['effects'][number], world);
    if (routed === undefined) return [];
    const deliveries = (Array.isArray(routed) ? routed : [routed]) as readonly Omit<
      Message,
      'from'
    >[];
    return deliveries.map(({ to, event }) => {
      const receiver = this.#indexOf.get(to);
      if (receiver === undefined || typeof event?.type !== 'string') {
        throw new ConfigurationError(
          'INVALID_ROUTE',
          `Expected route("${from}", ${effect.type}) to answer { to, event } for one of ` +
            `${this.ids.map((id) => `"${id}"`).join(', ')}, got ${show({ to, event })}`,
        );
      }
      return this.#pool.packet(sender, receiver, event);
    });
  }

  #mayRepeat(packet: Packet): boolean {
    const { duplicates = false } = this.#system;
    return typeof duplicates === 'function' ? duplicates(packet) : duplicates;
  }
}

/** Appends packets to their channels. The list remains sorted by channel. */
function insert(inFlight: readonly Packet[], sent: readonly Packet[]): readonly Packet[] {
  return [...inFlight, ...sent].toSorted((a, b) => a.channel - b.channel);
}

export function stateAt(world: WorldNode, index: number): ActorState {
  const state = world.states[index];
  if (state === undefined) throw new RangeError(`No actor ${index}`);
  return state;
}

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

  /** Returns the packet that remains in its channel after the first delivery. */
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

  /** Returns the first delivery of a packet that will be delivered again. */
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

/** Returns the value with this name. Creates the value with a number on first use. */
function made<T>(values: Map<string, T>, name: string, make: (number: number) => T): T {
  let value = values.get(name);
  if (value === undefined) values.set(name, (value = make(values.size)));
  return value;
}
