// A session's commit unit: its machines, and the messages between them. The session's regions, the interaction arbiter,
// the outbox, the questions and the tool calls apply one event at a time. They exchange messages in the same
// transaction.
//
// Owns:     the session's machines, and the order within a transaction.
// Does not: define the messages between machines (machines/session-wiring), store texts and results (records), speak
//           (lead), or run subagents.
//
// Invariants
//   SESSION-UNIT-1. The same transaction accepts an answer, releases the floor and grants it again.
//   SESSION-UNIT-2. The outbox learns whether its gate is open in the transaction that changes the gate.
//   SESSION-UNIT-3. User input has exactly one addressee: the question that has the floor, or the lead agent.
//   SESSION-UNIT-4. Background work is delegated, or a tool is detached, only if the same transaction has reserved a
//       place for the result. Otherwise, that transaction rejects the call, or the model keeps waiting for the tool. A
//       reserved place is freed exactly once.
//   SESSION-UNIT-5. If a tool spawned a subagent, the subagent's result waits for the rest of its batch only if the
//       result's transaction reserves a place in the outbox. Otherwise, the result is reported separately. It is never
//       dropped.

import { OffstageError } from '../../../values/errors.ts';
import { propertiesOf } from '../../../values/json.ts';
import type { Snapshot, SnapshotFrom } from 'xstate';
import {
  askingFor,
  clientCallMachine,
  floorOf,
  gateMessage,
  gateOf,
  hasRoom,
  interactionMachine,
  outboxMachine,
  ownerOf,
  questionMachine,
  reachMachine,
  scheduleMachine,
  sessionMachine,
  shared,
  toolCallMachine,
  wire,
  type Failure,
  type Gate,
  type Stamped,
} from '../../../machines/index.ts';
import { runOf } from '../../../machines/tool-call-machine.ts';
import {
  CommitUnit,
  type Posted,
  type UnitBody,
  type UnitEvent,
} from '../../runtime/commit-unit.ts';
import type { JournalEntry } from '../../ports/journal.ts';
import type { Host } from '../../runtime/host.ts';
import type { SessionActorEvent } from '../../contracts/session-command.ts';
import type { HostedActor } from '../../runtime/actor-tree.ts';
import {
  plain,
  Population,
  withNoLimits,
  type MemberSnapshot,
  type Shown,
} from '../../runtime/hosting.ts';
import { Cell, Table, type Draft } from '../../runtime/draft.ts';
import { Batches, type BatchesSnapshot } from '../state/batches.ts';
import {
  inputsIn,
  isSameInputs,
  type SessionInputs,
  SESSION_VERSION,
  SESSION_SHAPES,
} from './session-entries.ts';
import type { QuarantinedEntry } from '../../contracts/session-views.ts';
import { subjectOf } from '../../contracts/records.ts';
import {
  received,
  type EventFor,
  type Received,
  type SessionMessage,
  type SessionProtocol,
  type UnitEffects,
} from '../../contracts/session-protocol.ts';

/** The actor of the entries that contain snapshots of the whole session; see `session-journal.ts`. */
export const SNAPSHOTS = 'snapshots';

/** The machines of a session, as plain JSON. */
export interface SessionUnitSnapshot {
  readonly machines: {
    readonly session: Snapshot<unknown>;
    readonly interaction: Snapshot<unknown>;
    readonly outbox: Snapshot<unknown>;
  };
  readonly questions: readonly MemberSnapshot[];
  readonly calls: readonly MemberSnapshot[];
  /** @defaultValue none */
  readonly clientCalls?: readonly MemberSnapshot[];
  /** @defaultValue none */
  readonly schedules?: readonly MemberSnapshot[];
  /** @defaultValue none */
  readonly ways?: readonly MemberSnapshot[];
  readonly batches: BatchesSnapshot;
  readonly placed: readonly string[];
}

/** The kinds of actors whose view may change with any of their events. */
const SHOWN: ReadonlySet<string> = new Set(['session', 'question', 'client', 'schedule', 'reach']);

/** The default time limit of an inline tool. */
export const DEFAULT_TOOL_TIMEOUT_MS = 30_000;

/** The actor of a session. */
export type SessionActor = HostedActor<SnapshotFrom<typeof sessionMachine>, SessionActorEvent>;

/** The session that contains the unit. The owner's methods must not call the unit's machines. */
export interface SessionUnitOwner extends Pick<
  UnitBody,
  'release' | 'crashed' | 'ignored' | 'journalRefused'
> {
  /** Holds the changes that a step makes inside and outside the unit. */
  readonly draft: Draft;
  /** Applies an event that contains text or creates a machine, and returns the messages within the unit. */
  fold(received: Received): readonly SessionMessage[];
  /** Adds to an event the facts that are known at that moment, so that its entry records them. */
  complete?(taken: Received): UnitEvent & Stamped;
}

export class SessionUnit implements UnitBody {
  readonly shapes = SESSION_SHAPES;
  readonly unit: CommitUnit<SessionProtocol>;
  readonly questions: Population;
  readonly calls: Population<typeof toolCallMachine>;
  readonly clientCalls: Population<typeof clientCallMachine>;
  readonly schedules: Population<typeof scheduleMachine>;
  /** The machines that deliver over the channels of `reach`. */
  readonly ways: Population<typeof reachMachine>;
  batches!: Batches;
  // The owner, which executes the effects and receives the unit's reports.
  readonly release: SessionUnitOwner['release'];
  readonly crashed: SessionUnitOwner['crashed'];
  readonly ignored: SessionUnitOwner['ignored'];
  readonly journalRefused: SessionUnitOwner['journalRefused'];
  readonly #owner: SessionUnitOwner;
  readonly #host: Host;
  readonly #session: Population<typeof sessionMachine>;
  readonly #interaction: Population<typeof interactionMachine>;
  readonly #outbox: Population<typeof outboxMachine>;
  /** The machines by kind of address. For other kinds, `fold` decides whether an event has an effect. */
  readonly #machines: {
    readonly [Kind in Received['kind']]?: (id: string) => readonly [Population, id: string];
  } = {
    session: () => [this.session, ''],
    interaction: () => [this.#interaction, ''],
    outbox: () => [this.outbox, ''],
    question: (id) => [this.questions, id],
    call: (id) => [this.calls, id],
    client: (id) => [this.clientCalls, id],
    schedule: (id) => [this.schedules, id],
    reach: (id) => [this.ways, id],
    batch: (id) => [this.batches, id],
    member: (id) => [this.batches, this.batches.expecting(id) ?? ''],
    delivery: (id) => {
      const batchId = this.batchOf(id);
      const isHeld = batchId !== null && this.batches.contextOf(batchId)?.parts.includes(id);
      return isHeld ? [this.batches, batchId] : [this.outbox, ''];
    },
  };
  /** This process's inputs. */
  readonly #own: SessionInputs;
  #inputs!: SessionInputs;
  /** False until the machines are first read. The machines of a suspended session are never started. */
  #hasBegun = false;
  /** The ids of service events for whose messages the outbox has reserved a place. */
  readonly #placed: Table<true>;
  readonly #gate: Cell<Gate | null>;
  /** The `session` actor that an app has read, or null if no app has read it. */
  #actor: SessionActor | null = null;

  constructor(
    host: Host,
    options: SessionInputs & { readonly id: string },
    owner: SessionUnitOwner,
  ) {
    this.#owner = owner;
    ({
      release: this.release,
      crashed: this.crashed,
      ignored: this.ignored,
      journalRefused: this.journalRefused,
    } = owner);
    this.#host = host;
    this.#own = options;
    const { id } = options;
    const identity = { id, scope: id, kind: 'session', definitionVersion: SESSION_VERSION };
    const { draft } = owner;
    this.unit = new CommitUnit(identity, host, this, draft);
    this.#placed = new Table(draft);
    this.#gate = new Cell<Gate | null>(draft, null);
    // The journal's entries are folded before the machines start.
    this.unit.pause();
    this.#session = new Population(sessionMachine, 'session', this.unit, host, id);
    this.#interaction = new Population(interactionMachine, 'interaction', this.unit, host);
    this.#outbox = new Population(outboxMachine, 'outbox', this.unit, host);
    this.questions = new Population(questionMachine, 'question', this.unit, host);
    this.calls = new Population(toolCallMachine, 'call', this.unit, host);
    this.clientCalls = new Population(clientCallMachine, 'client', this.unit, host);
    this.schedules = new Population(scheduleMachine, 'schedule', this.unit, host);
    this.ways = new Population(reachMachine, 'reach', this.unit, host);
    this.#beginWith(options);
    // An inspector shows a session as soon as it is created.
    if (host.actors.isSeen) this.begin();
  }

  /** The machines' inputs, as in the first entry. */
  get inputs(): SessionInputs {
    return this.#inputs;
  }

  /** Returns the state, for `restore`. */
  toSnapshot(): SessionUnitSnapshot {
    this.begin();
    return {
      machines: {
        session: plain(this.#session.snapshot),
        interaction: plain(this.#interaction.snapshot),
        outbox: plain(this.#outbox.snapshot),
      },
      questions: this.questions.snapshots,
      calls: this.calls.snapshots,
      ...(this.clientCalls.ids.length > 0 && { clientCalls: this.clientCalls.snapshots }),
      ...(this.schedules.ids.length > 0 && { schedules: this.schedules.snapshots }),
      ...(this.ways.ids.length > 0 && { ways: this.ways.snapshots }),
      batches: this.batches.toSnapshot(),
      placed: [...this.#placed.keys()],
    };
  }

  /** Resumes from the result of `toSnapshot`, after `seq` entries. `inputs`: the machines' initial inputs. */
  restore(snapshot: SessionUnitSnapshot, inputs: SessionInputs, seq: number): void {
    this.#beginWith(inputs);
    this.unit.setSequence(seq);
    const { session, interaction, outbox } = snapshot.machines;
    const only = (state: Snapshot<unknown>) => [{ id: '', state }];
    this.#session.restore(only(withNoLimits(session, sessionMachine, inputs.session)));
    this.#interaction.restore(only(interaction));
    this.#outbox.restore(only(withNoLimits(outbox, outboxMachine, inputs.outbox)));
    this.#hasBegun = true;
    this.questions.restore(snapshot.questions);
    this.calls.restore(snapshot.calls);
    this.clientCalls.restore(snapshot.clientCalls ?? []);
    this.schedules.restore(snapshot.schedules ?? []);
    this.ways.restore(snapshot.ways ?? []);
    this.batches.restoreAll(snapshot.batches);
    for (const eventId of snapshot.placed) this.#placed.set(eventId, true);
    this.#gate.value = gateOf(this.session.snapshot, inputs.canInterrupt);
  }

  /**
   * Folds the journal's entries. The machines keep the inputs from the journal's first entry. The `inputs` of this
   * process apply only to sessions that start in it.
   */
  refold(entries: readonly JournalEntry[]): readonly QuarantinedEntry[] {
    const { actors } = this.#host;
    actors.pause(this.unit.id);
    try {
      const inputs = inputsIn(entries);
      if (inputs && !isSameInputs(inputs, this.#inputs)) this.#beginWith(inputs);
      this.begin();
      return this.unit.refold(entries);
    } finally {
      actors.resume(this.unit.id);
    }
  }

  /** Resets the unit to its initial state. */
  reset(): void {
    this.questions.stop();
    this.calls.stop();
    this.clientCalls.stop();
    this.schedules.stop();
    this.ways.stop();
    this.#placed.clear();
    this.#gate.value = null;
    this.#beginWith(this.#own);
  }

  /** The activities that are running: deadlines and inline tools. */
  get underWay(): readonly Posted[] {
    this.begin();
    return this.#populations.flatMap((members) => members.underWay);
  }

  #beginWith(inputs: SessionInputs): void {
    const { session, outbox, canInterrupt, batches = null, books } = inputs;
    this.#inputs = { session, outbox, canInterrupt, batches, ...(books && { books }) };
    (this.batches as Batches | undefined)?.stop();
    this.batches = new Batches(batches, this.unit, this.#host);
    this.#host.actors.pause(this.unit.id);
    this.#hasBegun = false;
  }

  /** Starts the machines, unless they were already started or restored. */
  begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { session, outbox } = this.#inputs;
    this.unit.start(() => {
      this.#session.create('', session);
      this.#interaction.create('');
      this.#outbox.create('', outbox);
    });
    if (this.unit.disposed) this.#stopMachines();
  }

  get #populations(): readonly Population[] {
    const { questions, calls, clientCalls, schedules, ways, batches } = this;
    const single = [this.#session, this.#interaction, this.#outbox];
    return [...single, questions, calls, clientCalls, schedules, ways, batches];
  }

  #stopMachines(): void {
    for (const members of this.#populations) members.stop();
  }

  /** The session's actor for apps, which is the same object for as long as the session exists. */
  get actor(): SessionActor {
    // The actor tree declares the same type for all machines.
    this.#actor ??= this.#host.actors.show(this.session.shown()) as SessionActor;
    if (this.unit.disposed) this.#host.actors.ended(this.unit.id);
    return this.#actor;
  }

  get session(): Population<typeof sessionMachine> {
    this.begin();
    return this.#session;
  }

  /** The unit's machines, as their actors expose them. */
  *machines(): Iterable<Shown> {
    this.begin();
    for (const members of this.#populations) yield* members.machines();
  }

  get outbox(): Population<typeof outboxMachine> {
    this.begin();
    return this.#outbox;
  }

  get interaction(): SnapshotFrom<typeof interactionMachine> {
    this.begin();
    return this.#interaction.snapshot;
  }

  /** The question that receives the user's input, or null if there is none. */
  get owner(): string | null {
    this.begin();
    return ownerOf(this.#interaction.snapshot);
  }

  /** The open questions beside the floor, which the session's user may not answer, oldest first. */
  get beside(): readonly string[] {
    return this.questions.ids.filter((id) => {
      const { value, context, done } = this.questions.stateOf(id) ?? { done: true };
      return !done && value !== 'queued' && propertiesOf(context)['epoch'] === 0;
    });
  }

  /** Returns the batch that reports the result of a call or of a spawned subagent; null if there is none. */
  batchOf(id: string): string | null {
    const call = this.calls.of(id);
    return call ? call.context.batchId : this.batches.holding(id);
  }

  /** Returns whether the delivery has not reached the user yet: it is in the outbox or is an open question. */
  isWaiting(deliveryId: string): boolean {
    const { pending, current } = this.outbox.snapshot.context;
    return (
      current?.deliveryId === deliveryId ||
      pending.some((item) => item.deliveryId === deliveryId) ||
      this.questions.stateOf(deliveryId)?.done === false
    );
  }

  /** Returns whether a call's running tool is awaited or detached; null if no tool is running. */
  runOf(callId: string): 'awaited' | 'detached' | null {
    return runOf(this.calls.stateOf(callId)?.value);
  }

  stop(): void {
    this.unit.dispose();
    this.#stopMachines();
  }

  take(actor: string, event: UnitEvent & Stamped): (UnitEvent & Stamped) | null {
    const taken = addressed(actor, event);
    if (!this.#accepts(taken)) return null;
    return this.#owner.complete?.(taken) ?? event;
  }

  accepts(actor: string, event: UnitEvent & Stamped): boolean {
    return this.#accepts(addressed(actor, event));
  }

  #accepts({ kind, id, event }: Received): boolean {
    const machine = this.#machines[kind]?.(id);
    return !machine || machine[0].accepts(machine[1], event);
  }

  apply(actor: string, stamped: UnitEvent & Stamped): void {
    const taken = addressed(actor, stamped);
    const { kind, id, event } = taken;
    let follow = this.#owner.fold(taken);
    const machine = this.#machines[kind]?.(id);
    machine?.[0].apply(machine[1], event);
    switch (kind) {
      case 'session':
        // The previous clients left when the earlier process ended, not when this one started.
        this.#within(
          shared(event, this.owner, this.batches.latest, this.beside),
          event.type === 'session.recovered' ? (event.lastAt ?? event.at) : event.at,
        );
        break;
      case 'place':
        // The service has no message for the user. Repeated events do not free the place again.
        if (this.#placed.delete(id))
          this.#within([{ actor: 'outbox', event: { type: 'outbox.unreserve' } }], event.at);
        break;
      case 'call':
        // Freed in the same transaction, because a call that has been cancelled in the meantime frees its own place.
        if (event.type === 'subagent.rejected' && event.reserved !== undefined)
          this.#within([{ actor: 'outbox', event: { type: 'outbox.unreserve' } }], event.at);
        break;
      case 'questions': {
        const { requestId, timeoutMs, beside } = event;
        if (this.questions.has(requestId)) break;
        this.questions.create(requestId, { requestId, timeoutMs });
        this.#within([askingFor(requestId, beside)], event.at);
        // A question that must wait for its turn does not post an event.
        this.#changed(`question:${requestId}`);
        this.post('ways.wanted', { deliveryId: requestId });
        break;
      }
      case 'calls': {
        const { callId, timeoutMs = DEFAULT_TOOL_TIMEOUT_MS } = event;
        if (this.calls.has(callId)) break;
        const batchId = this.batches.join(event, this.isAttached);
        this.calls.create(callId, { callId, timeoutMs, batchId });
        break;
      }
      case 'clients':
        if (this.clientCalls.has(event.id)) break;
        this.clientCalls.create(event.id, event);
        this.#changed(`client:${event.id}`);
        break;
      case 'schedules': {
        const { key, dueAt, task } = event.schedule;
        const isTask = task !== undefined;
        const moved = { type: 'schedule.moved', dueAt, isTask } as const;
        if (this.schedules.stateOf(key)?.done === false)
          this.#within([{ actor: `schedule:${key}`, event: moved }], event.at);
        else this.schedules.create(key, { dueAt, isTask });
        this.#changed(`schedule:${key}`);
        break;
      }
      case 'ways':
        if (!this.ways.has(event.deliveryId) && this.isWaiting(event.deliveryId)) {
          this.ways.create(event.deliveryId, event);
          this.#changed(`reach:${event.deliveryId}`);
        }
        break;
      case 'results':
        if (event.type === 'result.expected') this.#expect(event);
        break;
      case 'services': {
        const { eventId } = event;
        const hasPlace = this.#placed.has(eventId);
        const granted = hasPlace || hasRoom(this.outbox.snapshot.context);
        if (granted) this.#placed.set(eventId, true);
        if (granted && !hasPlace)
          this.#within([{ actor: 'outbox', event: { type: 'outbox.reserve' } }], event.at);
        this.post('services.placed', { eventId, granted });
        break;
      }
      case 'notices': {
        const { deliveryId } = event;
        this.#placed.delete(subjectOf(deliveryId));
        if (follow.length > 0) follow = this.#withSiblings(event, follow);
        this.post('notices.posted', { deliveryId });
        break;
      }
      case 'usage':
        this.post('usage.reported', { used: event.usage });
        break;
      case 'snapshots':
        this.post('snapshots.written', { seq: this.unit.seq + 1 });
        break;
      case 'outbox':
        if (event.type === 'outbox.add')
          this.post('ways.wanted', { deliveryId: event.item.deliveryId });
        break;
      // These events have already been applied by `fold` or by a machine.
      case 'interaction':
      case 'question':
      case 'client':
      case 'schedule':
      case 'reach':
      case 'batch':
      case 'member':
      case 'delivery':
      case 'conversation':
      case 'transfers':
      case 'agents':
      case 'directives':
      case 'user':
      case 'lead':
      case 'budget':
      case 'answers':
      case 'opening':
        break;
    }
    this.#within(follow, event.at);
    // Some state changes do not post an event, but screens must show them.
    if (SHOWN.has(kind)) this.#changed(actor);
  }

  /** Posts an effect of the unit itself (not of a machine), for the event that is being applied. */
  post<Name extends keyof UnitEffects>(name: Name, params: UnitEffects[Name]): void {
    const [actor, effect] = split(name);
    this.unit.post(actor, { kind: 'do', name: effect, params });
  }

  /** Returns whether a place in the outbox is reserved for the service's message about this event. */
  hasPlace(eventId: string): boolean {
    return this.#placed.has(eventId);
  }

  /**
   * Returns the messages that an effect sends to other machines of this unit. Other effects are executed outside the
   * unit.
   */
  route({ actor, effect }: Posted): readonly SessionMessage[] {
    if (effect.kind !== 'do') return [];
    const [kind, id] = split(actor, ':');
    if (kind === 'call' && effect.name === 'delegate') return [this.#reserve(id)];
    const batchOf = (callId: string): string | null => this.batchOf(callId);
    return wire(kind, effect.name, effect.params, batchOf, () =>
      hasRoom(this.outbox.snapshot.context),
    );
  }

  get isAttached(): boolean {
    return this.session.snapshot.matches({ client: 'attached' });
  }

  /** Allows a spawned subagent's result to be reported together with the other results of its request. */
  #expect({
    deliveryId: callId,
    requestId,
    at,
  }: Extract<EventFor<'results'>, { type: 'result.expected' }> & Stamped): void {
    if (this.batches.holding(callId) !== null) return;
    const made = { callId, requestId, isConsolidated: true, at };
    const batchId = this.batches.join(made, this.isAttached);
    if (batchId === null || floorOf(this.session.snapshot) !== 'nobody') return;
    // The reply that spawned the subagent is already over.
    this.#within([{ actor: `batch:${batchId}`, event: { type: 'batch.replied' } }], at);
  }

  /**
   * Adds a spawned subagent's result to its batch, and reserves a place in the outbox for it. If the outbox has no free
   * place, the result is reported separately.
   */
  #withSiblings(
    { deliveryId: callId, result }: EventFor<'notices'>,
    added: readonly SessionMessage[],
  ): readonly SessionMessage[] {
    const batchId = this.batches.expecting(callId);
    if (batchId === null) return added;
    const batch = `batch:${batchId}` as const;
    const { context } = this.outbox.snapshot;
    if (result === undefined || !hasRoom(context))
      return [{ actor: batch, event: { type: 'batch.left', callId } }, ...added];
    return [
      { actor: 'outbox', event: { type: 'outbox.reserve' } },
      { actor: batch, event: { type: 'batch.settled', callId } },
    ];
  }

  /** Reserves a place in the outbox before work starts, so that its result is never dropped. */
  #reserve(callId: string): SessionMessage {
    const { context } = this.outbox.snapshot;
    if (hasRoom(context)) return { actor: 'outbox', event: { type: 'outbox.reserve' } };
    const error: Failure = {
      code: 'OUTBOX_FULL',
      message: `${context.capacity} results and notices wait to be heard or are being made: maxDeliveries is ${context.capacity}`,
      retryable: true,
    };
    return { actor: `call:${callId}`, event: { type: 'subagent.rejected', error } };
  }

  settle(): readonly SessionMessage[] {
    const gate = gateOf(this.session.snapshot, this.#inputs.canInterrupt);
    if (gate === this.#gate.value) return [];
    this.#gate.value = gate;
    return [gateMessage(gate)];
  }

  /** Updates an actor's view after the commit. */
  #changed(actor: string): void {
    this.unit.post(actor, { kind: 'do', name: 'changed', params: undefined });
  }

  #within(messages: readonly SessionMessage[], at: number): void {
    for (const { actor, event } of messages) {
      const taken = this.take(actor, { ...event, at });
      if (taken) this.apply(actor, taken);
    }
  }
}

/** @throws {OffstageError} `INTERNAL` if the address is unknown. */
function addressed(actor: string, event: UnitEvent & Stamped): Received {
  const known = received(actor, event);
  if (known) return known;
  throw new OffstageError(
    'INTERNAL',
    `A session has no actor ${actor}: expected one of SessionProtocol for \`${event.type}\``,
  );
}

/** Splits an address, or an effect's name, into its parts. */
function split(name: string, separator = '.'): [kind: string, rest: string] {
  const end = name.indexOf(separator);
  return end < 0 ? [name, ''] : [name.slice(0, end), name.slice(end + 1)];
}
