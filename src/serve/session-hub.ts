// Connects a session to its clients: all clients see everything, users may act, and one client at a time has the voice.
//
//   session.events ─▶ shared? ─▶ patch of the view ─▶ one frame for all ─▶ each client
//
// Owns:     the session's frames and their numbers, the frames kept for reconnecting clients, the command receipts, the
//           voice owner.
// Does not: determine a client's identity (`authorize` does) or limit its frames (`served-client.ts`).
//
// Invariants
//   SESSION-HUB-1. A client receives the whole state and then every frame once, in order. A client that reconnects
//       within `resumeMs` receives the missed frames instead of the state.
//   SESSION-HUB-2. A frame is created only once for all clients that may answer the same questions, and it contains
//       only changes.
//   SESSION-HUB-6. A client learns whether it may answer a question. Only an operator learns which other clients may
//       answer it.
//   SESSION-HUB-7. A client's acknowledgements count for the session's user only if the client `hears` for that user.
//       From other clients, the hub accepts only two acknowledgements: that the client shows a question that is for its
//       identity, and that it answers such a question.
//   SESSION-HUB-3. A command with the id of an earlier command from the same client is not executed again. The client
//       receives the earlier receipt. Commands from a watcher are not executed.
//   SESSION-HUB-4. Audio and playout reports from clients that do not have the voice never reach the session. When the
//       voice moves, one client detaches from the session and another attaches.
//   SESSION-HUB-8. A call, its arguments and its claim are sent only to a client that `hears` for the user of the call.
//       The journal does not contain any client's secret.
//   SESSION-HUB-9. The session lists each client as present with the identity and device from `authorize`. Clients
//       receive this list only if the app shares it, because it names watchers and operators.
//   SESSION-HUB-5. The session is in use while a client is connected, and for `resumeMs` after the last client has
//       left. If connections outlive memory on the host, the clients of a text session do not keep the session in use.
//       When the session is unloaded, its clients are parked. The next hub then sends the whole state to each of them.

import type { Subscription } from 'rxjs';
import type { ClientSource } from '../actors/contracts/identity.ts';
import {
  isWaiting,
  mayAnswer,
  questionFor,
  type AnswerReceipt,
  type QuestionView,
  type SessionEvent,
  type SessionState,
  type SubagentView,
} from '../actors/contracts/session-views.ts';
import type {
  CallFrame,
  CommandFrame,
  HelloFrame,
  NoticeFrame,
  ServerFrame,
  WireEvent,
} from '../client/protocol.ts';
import { carryOut } from '../actors/session/view/base-session.ts';
import { PROTOCOL_VERSION, SPEECH_RATE_HZ } from '../client/protocol.ts';
import { patchOf, viewOf } from '../client/session-state.ts';
import { codeOf, isA, messageOf, OffstageError } from '../values/errors.ts';
import { hashOf } from '../values/storable.ts';
import type { AudioFrame } from '../voice/audio/audio-frame.ts';
import { resampleFrames } from '../voice/audio/frame-operators.ts';
import type { CheckedServe, ServedIdentity, ServedSession } from './options.ts';
import { FrameText, type ClientHub, type ServedClient } from './served-client.ts';

/** Changes are collected for this long, because a frame for each generated word would be mostly overhead. */
const BATCH_MS = 10;
/** The number of receipts that are kept per client. */
const MAX_RECEIPTS = 256;

/** The state of a client that outlives its connections. */
interface Visitor {
  readonly memory: string;
  /** The receipts by command id. The value is null while a command is being executed. */
  readonly receipts: Map<number, ServerFrame | null>;
  client: ServedClient | null;
  forget: () => void;
}

export interface HubOptions {
  /** Whether connections outlive the memory of the session (SESSION-HUB-5). @defaultValue false */
  readonly parks?: boolean;
  /** Called once when the hub no longer needs the session. */
  ended(): void;
}

export class SessionHub implements ClientHub {
  readonly #session: ServedSession;
  readonly #options: CheckedServe;
  readonly #epoch: string;
  readonly #parks: boolean;
  readonly #ended: () => void;
  readonly #executing = new Set<Promise<void>>();
  readonly #subscriptions: Subscription[] = [];
  readonly #visitors = new Map<string, Visitor>();
  readonly #clients = new Set<ServedClient>();
  /** The clients that have received a call. */
  readonly #offered = new WeakSet<ServedClient>();
  readonly #listening = new Map<ServedClient, () => void>();
  /** The clients that can play audio. The last one has the voice. */
  readonly #speakers: ServedClient[] = [];
  /** The views that every client has received and that may still change. */
  readonly #views = new Map<string, object>();
  readonly #kept: { readonly seq: number; readonly frame: SharedText }[] = [];
  #keptBytes = 0;
  #pending: WireEvent[] = [];
  #isFlushDue = false;
  #seq = 0;
  #state: { readonly seq: number; readonly text: SharedText } | null = null;
  #owner: ServedClient | null = null;
  #detach: (() => void) | null = null;
  #started: Promise<void> | null = null;
  #cancelAlive: () => void = () => undefined;
  #cancelLinger: () => void = () => undefined;
  /** Why the hub has ended; null while it is running. */
  #over: Farewell | null = null;

  constructor(session: ServedSession, options: CheckedServe, { parks = false, ended }: HubOptions) {
    this.#session = session;
    this.#options = options;
    this.#parks = parks;
    this.#ended = () => ended();
    this.#epoch = options.environment.ids.next('ep');
    this.#subscriptions.push(
      session.events.subscribe({
        next: (event) => this.#happened(event),
        complete: () => this.#sessionEnded(),
      }),
    );
    if (this.isOver) return;
    if (session.audioOut)
      this.#subscriptions.push(
        session.audioOut
          .pipe(resampleFrames(SPEECH_RATE_HZ))
          .subscribe((frame) => this.#owner?.sendSound(frame)),
      );
    if (parks) return;
    this.#linger();
    this.#beat();
  }

  get isOver(): boolean {
    return this.#over !== null;
  }

  /** Whether no client is connected. The hub then remains for clients that reconnect. */
  get isUnused(): boolean {
    return this.#clients.size === 0;
  }

  get questions(): readonly QuestionView[] {
    return this.#session.store.getSnapshot().context.questions;
  }

  get hasVoice(): boolean {
    return this.#session.audioOut !== undefined;
  }

  /** Starts a text session. A voice session starts with its first client, so that the greeting is heard. */
  async open(): Promise<void> {
    if (!this.hasVoice) await this.#start();
  }

  add(client: ServedClient, hello: HelloFrame): void {
    if (this.#over) return farewell(client, this.#over);
    if (!client.takesWelcome()) return;
    const name = nameOf(client);
    const known = this.#visitors.get(name);
    // A connection that the client has lost may still look open to the server.
    known?.client?.bye('REPLACED', 'The client has connected again');
    known?.forget();
    const memory = this.#options.environment.ids.next('m');
    const visitor: Visitor = known ?? {
      memory,
      receipts: new Map(),
      client: null,
      forget: ignore,
    };
    visitor.client = client;
    visitor.forget = ignore;
    this.#visitors.set(name, visitor);
    this.#cancelLinger();
    this.#flush();
    this.#clients.add(client);
    const { after } = hello;
    if (after?.epoch !== this.#epoch || !this.#resume(client, after.seq)) this.#welcome(client);
    if (!client.isGone) this.#listening.set(client, this.#listen(client));
    this.#offer(client);
    client.joined(this);
    // The client was too slow to receive the missed frames. It was disconnected before the hub had its connection.
    if (client.isGone) this.left(client);
  }

  command(client: ServedClient, frame: CommandFrame | CallFrame): void {
    const visitor = this.#visitors.get(nameOf(client));
    if (!visitor) return;
    const earlier = visitor.receipts.get(frame.id);
    // SESSION-HUB-3
    if (earlier) return client.send(earlier);
    if (earlier === null) return;
    visitor.receipts.set(frame.id, null);
    const [oldest] = visitor.receipts.keys();
    if (visitor.receipts.size > MAX_RECEIPTS && oldest !== undefined)
      visitor.receipts.delete(oldest);
    const execution = this.#receiptOf(client, frame).then((receipt) => {
      this.#executing.delete(execution);
      visitor.receipts.set(frame.id, receipt);
      // The changes that a command makes are sent before its receipt.
      this.#flush();
      visitor.client?.send(receipt);
    });
    this.#executing.add(execution);
  }

  /**
   * Answers a question for a person without a client, only if the question is still waiting and `isSame` accepts it.
   * Returns the receipt, and the question after the answer.
   */
  async answerOpen(
    requestId: string,
    answer: (question: QuestionView) => Parameters<ServedSession['answer']>[1] | null,
    by: string,
  ): Promise<readonly [receipt: AnswerReceipt, question: QuestionView | undefined]> {
    const session = this.#session;
    const find = () => this.questions.find((one) => one.requestId === requestId);
    await this.#start();
    const question = find();
    const given = question && isWaiting(question.state) ? answer(question) : null;
    if (!given) return [{ accepted: false, reason: 'over' }, question];
    session.questionShown(requestId, { by });
    const receipt = await session.answer(requestId, given, { by, onlyOpen: true });
    return [receipt, find()];
  }

  /** Resolves when no command is being executed. */
  async commandsDone(): Promise<void> {
    while (this.#executing.size > 0) await Promise.all(this.#executing);
  }

  /** Resolves when the session is idle and no command is being executed. */
  async idle(): Promise<void> {
    // `idle` rejects if the session has not started yet or has ended.
    await this.#session.idle().catch(ignore);
    await this.commandsDone();
  }

  notice(client: ServedClient, frame: NoticeFrame): void {
    switch (frame.type) {
      case 'resync':
        if (!client.takesWelcome()) return;
        this.#flush();
        return this.#welcome(client);
      case 'voice.take':
        return this.#takeVoice(client);
      case 'voice.release':
        return this.#forgetSpeaker(client);
      case 'playout':
        if (client === this.#owner)
          this.#session.playout?.next({ itemId: frame.itemId, playedMs: frame.playedMs });
        return;
      case 'microphone':
        // The client limits the rate of its own audio.
        return;
    }
  }

  sound(client: ServedClient, frame: AudioFrame): void {
    // SESSION-HUB-4
    if (client === this.#owner) this.#session.audioIn?.next(frame);
  }

  left(client: ServedClient): void {
    this.#clients.delete(client);
    this.#listening.get(client)?.();
    this.#listening.delete(client);
    const visitor = this.#visitors.get(nameOf(client));
    if (visitor?.client === client) {
      visitor.client = null;
      visitor.forget = this.#options.environment.scheduler.schedule(
        () => void this.#visitors.delete(nameOf(client)),
        this.#options.limits.resumeMs,
        { isBackground: true },
      );
    }
    if (client.hears) this.#quietly(() => this.#session.clientCalls.left(callerNameOf(client)));
    this.#forgetSpeaker(client);
    if (this.#clients.size === 0) this.#linger();
  }

  /** Ends all connections. `retry`: clients may reconnect. */
  close(code: string, message: string, retry: boolean): void {
    this.#end([code, message, retry]);
  }

  #end(over: Farewell, part = farewell): void {
    if (this.#over) return;
    this.#flush();
    this.#over = over;
    for (const client of this.#clients) part(client, over);
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    for (const { forget } of this.#visitors.values()) forget();
    this.#visitors.clear();
    this.#cancelLinger();
    this.#cancelAlive();
    this.#release();
    this.#ended();
  }

  async #receiptOf(client: ServedClient, frame: CommandFrame | CallFrame): Promise<ServerFrame> {
    const { id } = frame;
    if (client.isWatcher) {
      const message = 'Expected a user: a watcher does nothing in the session';
      return { type: 'receipt', id, ok: false, code: 'NOT_ALLOWED', message };
    }
    if (frame.type === 'raise' && client.identity.role !== 'operator') {
      const message = 'Expected an operator: a user does not raise the budgets of the app';
      return { type: 'receipt', id, ok: false, code: 'NOT_ALLOWED', message };
    }
    try {
      await this.#start();
      const by = { by: client.identity.user };
      if (!client.hears && !this.#counts(frame))
        return { type: 'receipt', id, ok: true, value: null };
      // If a client answers a question with a button, it must have shown the question.
      if (!client.hears && frame.type === 'answer')
        this.#session.questionShown(frame.requestId, by);
      const value =
        frame.type === 'call.claim' || frame.type === 'call.result'
          ? await this.#called(client, frame)
          : await carryOut(this.#session, frame, by);
      return { type: 'receipt', id, ok: true, value };
    } catch (error) {
      if (isA(error, OffstageError))
        return { type: 'receipt', id, ok: false, code: codeOf(error), message: messageOf(error) };
      // The client does not receive the message of an unknown error, because that message may contain secrets.
      this.#options.onError(error, `serve: ${frame.type} of ${client.identity.user}`);
      return { type: 'receipt', id, ok: false, code: 'INTERNAL', message: 'The server failed' };
    }
  }

  #called(client: ServedClient, frame: CallFrame): boolean | Promise<boolean> {
    const { clientCalls } = this.#session;
    if (!client.hears) return false;
    const by = callerNameOf(client);
    const { callId } = frame;
    if (frame.type === 'call.claim')
      return clientCalls.claim(callId, by, { by: client.identity.user });
    const { error, output } = frame;
    return clientCalls.answer(callId, by, error === undefined ? { output } : { error });
  }

  /** Sends a client the calls that it may claim or has already claimed (SESSION-HUB-8). */
  #offer(client: ServedClient): void {
    if (!client.hears) return;
    const own = callerNameOf(client);
    const calls = this.#session.clientCalls
      .list()
      .filter(({ user, state, by }) =>
        state === 'waiting' ? user === null || user === client.identity.user : by === own,
      )
      .map(({ id: callId, name, input, dueAt, state }) => {
        return { callId, name, input, dueAt, own: state === 'claimed' };
      });
    if (calls.length === 0 && !this.#offered.has(client)) return;
    this.#offered.add(client);
    client.send({ type: 'calls', calls });
  }

  /** Whether a command counts even though its client does not hear for the user (SESSION-HUB-7). */
  #counts(frame: CommandFrame | CallFrame): boolean {
    if (frame.type !== 'question.shown') return frame.type !== 'shown';
    const { questions } = this.#session.store.getSnapshot().context;
    // The session itself ignores identities that are not allowed to answer.
    return questions.some(
      ({ requestId, answerableBy }) => requestId === frame.requestId && answerableBy !== undefined,
    );
  }

  /** Starts the session once. After a failure, another attempt is allowed. */
  #start(): Promise<void> {
    this.#started ??= Promise.resolve(this.#session.start()).catch((error: unknown) => {
      this.#started = null;
      throw error;
    });
    return this.#started;
  }

  /**
   * Lists the client in `present`, and attaches the client of a text session as a reader. A voice session attaches the
   * client that has its voice.
   */
  #listen(client: ServedClient): () => void {
    const session = this.#session;
    const source = sourceOf(client);
    try {
      const isAttached = client.hears && !this.hasVoice && !this.#parks;
      const leave = [session.listen(source), ...(isAttached ? [session.attach(source)] : [])];
      return () => {
        for (const each of leave) this.#quietly(each);
      };
    } catch (error) {
      // The session is full (MAILBOX_FULL), but the client can still watch it.
      this.#options.onError(error, 'serve: attaching a client');
      return ignore;
    }
  }

  #takeVoice(client: ServedClient): void {
    if (!client.hears || !this.hasVoice || !client.channel.sound)
      return client.send({ type: 'voice', own: false });
    this.#withdraw(client);
    this.#speakers.push(client);
    this.#setOwner(client);
  }

  #setOwner(client: ServedClient): void {
    if (client === this.#owner) return;
    this.#release();
    try {
      this.#detach = this.#session.attach(sourceOf(client));
    } catch (error) {
      this.#options.onError(error, 'serve: attaching a client');
      return;
    }
    this.#owner = client;
    client.send({ type: 'voice', own: true });
    this.#start().catch((error: unknown) => this.#options.onError(error, 'serve: starting'));
  }

  #release(): void {
    const owner = this.#owner;
    this.#owner = null;
    owner?.send({ type: 'voice', own: false });
    if (this.#detach) this.#quietly(this.#detach);
    this.#detach = null;
  }

  #forgetSpeaker(client: ServedClient): void {
    this.#withdraw(client);
    if (client !== this.#owner) return;
    this.#release();
    const next = this.#speakers.at(-1);
    if (next && !this.#over) this.#setOwner(next);
  }

  #withdraw(client: ServedClient): void {
    const index = this.#speakers.indexOf(client);
    if (index >= 0) this.#speakers.splice(index, 1);
  }

  #happened(event: SessionEvent): void {
    if (event.type === 'client_call.changed')
      for (const client of this.#clients) this.#offer(client);
    if (!this.#options.shared.has(event.type)) return;
    // A frame contains only the latest list, which grows with the number of identities.
    if (event.type === 'presence.changed')
      this.#pending = this.#pending.filter(({ type }) => type !== event.type);
    this.#pending.push(this.#wireEvent(event));
    // Interrupted speech must stop immediately.
    if (event.type === 'playout.clear') return this.#flush();
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    this.#options.environment.scheduler.schedule(() => this.#flush(), BATCH_MS);
  }

  /** Returns an event as clients receive it: if they already have a view, only the view's change (SESSION-HUB-2). */
  #wireEvent(event: SessionEvent): WireEvent {
    const shared =
      event.type === 'subagent.changed'
        ? { ...event, subagent: this.#forClients(event.subagent) }
        : event;
    const changed = viewOf(shared);
    if (!changed) return shared;
    const { of, id, view, isOver } = changed;
    const key = `${of} ${id}`;
    const before = this.#views.get(key);
    // Clients store finished views only for a limited time, which differs from client to client.
    if (isOver) this.#views.delete(key);
    else this.#views.set(key, view);
    return before ? { type: 'patch', of, id, ...patchOf(before, view) } : shared;
  }

  /** Removes the details of a subagent's work: the inputs and outputs of tools, and diagnostics. */
  #forClients(view: SubagentView): SubagentView {
    if (view.outcome === null || this.#options.shared.has('subagent.ended')) return view;
    const { diagnostics: _, verification: __, notes: ___, ...outcome } = view.outcome;
    return { ...view, outcome: { ...outcome, toolLedger: [] } };
  }

  #flush(): void {
    this.#isFlushDue = false;
    if (this.#pending.length === 0 || this.#over) return;
    const events = this.#pending;
    this.#pending = [];
    this.#seq += 1;
    const frame = { type: 'events', seq: this.#seq, now: this.#now, events } as const;
    const questions = events.flatMap((event) =>
      event.type === 'question.changed' ? event.question : [],
    );
    const text = new SharedText(questions, (show) =>
      this.#encoded({ ...frame, events: events.map((event) => eventFor(event, show)) }),
    );
    this.#keep(text);
    for (const client of this.#clients) client.write(text.for(client.identity));
  }

  /** An event is omitted if it cannot be expressed in JSON (for example, because the app's data contains a BigInt). */
  #encoded(frame: Extract<ServerFrame, { type: 'events' }>): FrameText {
    try {
      return new FrameText(JSON.stringify(frame));
    } catch (error) {
      this.#options.onError(error, 'serve: an event that is no JSON');
      const events = frame.events.filter(hasJson);
      return new FrameText(JSON.stringify({ ...frame, events }));
    }
  }

  #keep(frame: SharedText): void {
    this.#kept.push({ seq: this.#seq, frame });
    this.#keptBytes += frame.bytes;
    while (this.#keptBytes > this.#options.limits.resumeBytes)
      this.#keptBytes -= this.#kept.shift()?.frame.bytes ?? this.#keptBytes;
  }

  /** Sends the frames that follow `seq`. Returns false if some of them are no longer stored. */
  #resume(client: ServedClient, seq: number): boolean {
    const oldest = this.#kept[0]?.seq ?? this.#seq + 1;
    if (seq > this.#seq || seq + 1 < oldest) return false;
    const known = this.#knownOf(client);
    client.send({ type: 'resumed', epoch: this.#epoch, seq, now: this.#now, ...known });
    for (const kept of this.#kept)
      if (kept.seq > seq) client.write(kept.frame.for(client.identity));
    return true;
  }

  /** Sends the whole state. Clients that arrive at the same time share the text of the state. */
  #welcome(client: ServedClient): void {
    const { sessionId, user, role } = client.identity;
    const head = {
      type: 'welcome',
      v: PROTOCOL_VERSION,
      epoch: this.#epoch,
      seq: this.#seq,
      now: this.#now,
      sessionId,
      user,
      role,
      aliveMs: this.#options.limits.aliveMs,
      ...(this.#parks && { isSilent: true }),
      ...this.#knownOf(client),
    } satisfies Omit<Extract<ServerFrame, { type: 'welcome' }>, 'state'>;
    if (this.#state?.seq !== this.#seq) {
      const shared = this.#sharedState;
      const { questions } = shared;
      const text = new SharedText(
        questions,
        (show) => new FrameText(JSON.stringify({ ...shared, questions: questions.map(show) })),
      );
      this.#state = { seq: this.#seq, text };
    }
    const { text } = this.#state.text.for(client.identity);
    client.write(new FrameText(`${JSON.stringify(head).slice(0, -1)},"state":${text}}`));
  }

  get #sharedState(): SessionState {
    const { context } = this.#session.store.getSnapshot();
    return {
      ...context,
      present: this.#options.shared.has('presence.changed') ? context.present : [],
      subagents: context.subagents.map((view) => this.#forClients(view)),
    };
  }

  #knownOf(client: ServedClient): { readonly hasVoice: boolean; readonly memory: string } {
    return {
      hasVoice: this.hasVoice && client.channel.sound !== undefined,
      memory: this.#visitors.get(nameOf(client))?.memory ?? '',
    };
  }

  #beat(): void {
    const { environment, limits } = this.#options;
    this.#cancelAlive = environment.scheduler.schedule(
      () => {
        const frame = new FrameText(
          JSON.stringify({ type: 'alive', seq: this.#seq, now: this.#now } satisfies ServerFrame),
        );
        for (const client of this.#clients) client.write(frame);
        this.#beat();
      },
      limits.aliveMs,
      { isBackground: true },
    );
  }

  #linger(): void {
    if (this.#over || this.#parks) return;
    this.#cancelLinger();
    this.#cancelLinger = this.#options.environment.scheduler.schedule(
      () => this.close('IDLE', 'Nobody is connected', true),
      this.#options.limits.resumeMs,
      { isBackground: true },
    );
  }

  #sessionEnded(): void {
    // Checks the state instead of waiting for an event, because the session may have left before this hub subscribed.
    const { connection } = this.#session.store.getSnapshot().context;
    if (connection !== 'suspended') this.#end(ENDED);
    else this.#end(SUSPENDED, this.#parks ? (client) => client.parked() : farewell);
  }

  #quietly(leave: () => void): void {
    try {
      leave();
    } catch (error) {
      this.#options.onError(error, 'serve: detaching a client');
    }
  }

  get #now(): number {
    return this.#options.environment.clock.now();
  }
}

type Show = (question: QuestionView) => QuestionView;
type Reader = Pick<ServedIdentity, 'user' | 'role'>;

/** SESSION-HUB-6 */
const shownTo =
  ({ user, role }: Reader): Show =>
  (question) => {
    if (role === 'watcher') return { ...questionFor(question, user), mayAnswer: false };
    const shown = questionFor(question, user);
    const { answerableBy } = question;
    return role === 'operator' && answerableBy ? { ...shown, answerableBy } : shown;
  };

function eventFor(event: WireEvent, show: Show): WireEvent {
  return event.type === 'question.changed' ? { ...event, question: show(event.question) } : event;
}

/** A text that clients share. Readers that may answer the same questions receive the same form of it. */
class SharedText {
  readonly #questions: readonly QuestionView[];
  readonly #make: (show: Show) => FrameText;
  readonly #made = new Map<string, FrameText>();

  constructor(questions: readonly QuestionView[], make: (show: Show) => FrameText) {
    this.#questions = questions;
    this.#make = make;
  }

  /** The size of the first form. */
  get bytes(): number {
    const [first = this.for({ user: '', role: 'user' })] = this.#made.values();
    return first.bytes.byteLength;
  }

  for(reader: Reader): FrameText {
    const key = this.#formOf(reader);
    const text = this.#made.get(key) ?? this.#make(shownTo(reader));
    this.#made.set(key, text);
    return text;
  }

  /** Readers with the same key receive the same text. */
  #formOf({ user, role }: Reader): string {
    if (role === 'watcher') return this.#questions.length > 0 ? role : '';
    const may = this.#questions.flatMap((question) =>
      question.answerableBy ? Number(mayAnswer(question, user)) : [],
    );
    return may.length > 0 ? `${role} ${may.join('')}` : '';
  }
}

/** The last frame to a client. `retry`: the client may reconnect. */
type Farewell = readonly [code: string, message: string, retry: boolean];

const ENDED: Farewell = ['SESSION_ENDED', 'The session has ended', false];
const SUSPENDED: Farewell = ['SESSION_SUSPENDED', 'The session has left this process', true];

function farewell(client: ServedClient, [code, message, retry]: Farewell): void {
  client.bye(code, message, { retry });
}

function ignore(): void {}

/** A visitor's name contains the user, so that a client cannot take the name of another user's client. */
function nameOf({ identity, clientId }: ServedClient): string {
  return JSON.stringify([identity.user, clientId]);
}

function sourceOf({ identity: { user: by, device }, hears }: ServedClient): ClientSource {
  return { by, ...(device !== undefined && { device }), hears };
}

/** The name that the session uses for the client that has a call. */
function callerNameOf(client: ServedClient): string {
  // Clients of different users have different names, even if their hashes are equal.
  return `${client.identity.user} ${hashOf(client.clientId ?? '')}`;
}

function hasJson(event: WireEvent): boolean {
  try {
    return JSON.stringify(event) !== undefined;
  } catch {
    return false;
  }
}
