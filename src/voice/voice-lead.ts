// The lead agent of a voice session, which is a voice model behind a transport. No other component asks the model to
// speak, so two responses never collide.
//
// Owns:     the connections, the identity that the model has on them (agent, greeting, instructions), and the usage
//           that they have reported.
// Does not: decide who speaks next (turns), when an offer may be spoken (outbox) or to whom an utterance is addressed
//           (session), run tools, or store raw usage messages (`raw`), which may contain secrets.

import type { Observable } from 'rxjs';
import type { Offer, Speaker, SpokenTo, ToolAnswer } from '../actors/session/lead/speaker.ts';
import type { Prompt } from '../actors/notes/note.ts';
import type { Utterance } from '../actors/contracts/records.ts';
import { transferNote } from '../actors/conversation/model-messages.ts';
import { directivesNote, greetingNote } from '../actors/conversation/prompts.ts';
import { callSafely } from '../actors/runtime/host.ts';
import type { Shown } from '../actors/runtime/hosting.ts';
import { reportUsage } from '../actors/session/lead/lead-usage.ts';
import type { LeadSession } from '../actors/session/lead/lead-agents.ts';
import {
  checkImage,
  refuseImages,
  type ShownImage,
} from '../actors/session/questions/shown-image.ts';
import { backoffMs, restMs, type Failure } from '../machines/index.ts';
import { ConfigurationError, ProviderError } from '../values/errors.ts';
import type { AudioFrame } from './audio/audio-frame.ts';
import type { ConnectionClosed } from './connection/connection.ts';
import { ConnectionManager, type ConnectionOwner } from './connection/connection-manager.ts';
import type {
  Transport,
  TransportCommand,
  TransportConfiguration,
  TransportEvent,
} from './connection/transport.ts';
import { replay } from './output/replay.ts';
import { shownNote } from './output/speech-prompts.ts';
import { Turns, type TurnsOptions } from './turns/turns.ts';

/** After this time without a client, a session reports `NOBODY_ATTACHED` if a delivery or question is due. */
const UNATTENDED_MS = 10_000;
/** The minimum pause of a resting session, for an app that sets its reconnect delays to 0. */
const MIN_REST_MS = 1000;

/** If the provider closes twice within this time with the same message, this is reported as an error. */
const SOON_MS = 60_000;
/** The close codes of a planned close, a restart, or a close without a frame: RFC 6455, 7.4.1, and IANA's registry. */
const QUIET_CODES: ReadonlySet<number> = new Set([1000, 1001, 1005, 1006, 1012]);

export interface VoiceLeadOptions extends Omit<TurnsOptions, 'capabilities'> {
  readonly transport: Transport;
  /** The delay after the first loss, in milliseconds; it doubles each time up to `maxReconnectDelayMs`. */
  readonly reconnectDelayMs: number;
  readonly maxReconnectDelayMs: number;
  readonly keptAudioMs: number;
  readonly connectTimeoutMs: number;
}

export class VoiceLead implements Speaker, ConnectionOwner {
  readonly #core: LeadSession;
  readonly #options: VoiceLeadOptions;
  readonly #connections: ConnectionManager;
  readonly #turns: Turns;
  #transferId = '';
  /** Whether the current lead agent still has to say its greeting. */
  #owesGreeting = false;
  /** Whether the process ended before an utterance of the user was answered. */
  #owesReply = false;
  /** The reason and time of the provider's last close of the connection. */
  #closing = { text: '', at: 0, isReported: false };
  /** Whether a client has been attached in this process. */
  #hasAttached = false;
  #hasWatched = false;
  /** Stops watching for clients; null if no watch is active. */
  #stopWatching: (() => void) | null = null;

  constructor(core: LeadSession, options: VoiceLeadOptions) {
    const { transport } = options;
    this.#core = core;
    this.#options = options;
    const { keptAudioMs, connectTimeoutMs } = options;
    const { reconnectDelayMs: baseDelayMs, maxReconnectDelayMs: maxDelayMs } = options;
    this.#connections = new ConnectionManager(transport, core.host, this, {
      keptAudioMs,
      connectTimeoutMs,
      backoff: { baseDelayMs, maxDelayMs },
      notes: core.notes,
    });
    const { capabilities } = transport;
    this.#turns = new Turns(core, { ...options, capabilities }, this.#connections);
  }

  get id(): string {
    return this.#core.id;
  }

  machines(): readonly Shown[] {
    return [this.#turns.chart.shown, this.#turns.silence.shown, this.#connections.rotation];
  }

  get audioOut(): Observable<AudioFrame> {
    return this.#turns.speech.audioOut;
  }

  connect(): void {
    this.#turns.listening.reset();
    this.#connections.connect(this.configuration);
  }

  /** Connects now if the session is resting after an outage or its connection was refused. */
  reconnect(): void {
    const { unit } = this.#core;
    const { connection } = unit.session.snapshot.value;
    if (connection === 'resting' || connection === 'refused')
      this.#core.receive('session', { type: 'session.reconnect' });
  }

  disconnect(forGood: boolean): void {
    if (forGood) {
      this.#stopWatching?.();
      this.#turns.stop();
      this.#connections.close();
    } else this.#connections.disconnect();
  }

  transfer(transferId: string, to: string): void {
    this.#transferId = transferId;
    this.#connections.transfer(this.#configurationOf(to));
  }

  transferEnded(error: Failure | null): void {
    this.#connections.endTransfer(error);
    this.#sendKeptAudio();
    // A new connection receives the session settings and the conversation.
    const isNew = !this.#options.transport.capabilities.updatesSession;
    const item = this.#core.records.conversation.get(this.#transferId);
    if (item?.role === 'transfer' && !error && !isNew)
      this.#turns.memory.sendNote(item.id, transferNote(item));
    this.#turns.next();
  }

  begin(owes: 'greeting' | 'reply' | null): void {
    if (owes === 'greeting') this.#owesGreeting = this.#core.agents.current.greeting !== undefined;
    else this.#owesReply = owes !== null;
    if (this.#core.unit.isAttached) this.clientAttached();
  }

  configure(): void {
    if (this.#connections.configure(this.configuration)) return;
    const { inForce } = this.#core.records.directives;
    this.note(directivesNote(inForce), false);
  }

  /** Shows a picture to the model. Returns false if no model is connected. */
  showImage(image: ShownImage): boolean {
    const { name, capabilities } = this.#options.transport;
    if (!capabilities.acceptsImages) refuseImages(name);
    checkImage(image);
    if (!this.#connections.isReady) return false;
    const { mediaType, data } = image;
    const itemId = this.#core.host.environment.ids.next('img');
    this.#connections.send({ type: 'image.add', itemId, mediaType, data });
    this.#turns.memory.noteShown(itemId, shownNote(mediaType));
    return true;
  }

  /** Handles user audio at the transport's rate. */
  userSpoke(frame: AudioFrame): void {
    const { listening, speech } = this.#turns;
    const heard = speech.echo.heard(frame, this.#core.host.environment.clock.now());
    const isSent = this.#connections.sendAudio(heard, !listening.hasFloor);
    listening.sound(frame, isSent);
  }

  /** Handles a client's playout report. */
  played(itemId: string, playedMs: number): void {
    this.#turns.speech.played(itemId, playedMs);
  }

  say(offer: Offer): void {
    this.#turns.offer(offer);
  }

  stop(generation: number | null): void {
    if (generation === null) this.#turns.interrupt();
    else this.#turns.responses.abandon(generation);
  }

  answer(callId: string, answer: ToolAnswer | null): void {
    if (answer === null) this.#turns.deferTool(callId);
    else this.#turns.answerTool(callId, answer);
  }

  note(prompt: Prompt, respond: boolean, id?: string): void {
    const { memory } = this.#turns;
    if (id === undefined) memory.note(prompt);
    else memory.noteOnce(id, prompt);
    if (respond) this.#turns.askToSpeak();
  }

  get repliesUnasked(): boolean {
    return this.#options.transport.capabilities.responds === 'by_itself';
  }

  get awaitsWords(): boolean {
    return this.#turns.listening.unknownMs > 0;
  }

  heard(utterance: Utterance, to: SpokenTo | null): void {
    if (to === null) {
      this.reconnect();
      this.#turns.heardUser(utterance);
    } else this.#turns.overheard(utterance, to);
  }

  /**
   * Handles the arrival of a client. The model greets the first client, and any reply that is still owed is requested.
   */
  clientAttached(): void {
    this.#hasAttached = true;
    this.#stopWatching?.();
    this.#turns.update();
    const greeting = this.#owesGreeting ? greetingNote(this.#core.agents.current) : undefined;
    if (greeting === undefined && !this.#owesReply) return;
    if (greeting !== undefined) this.note(greeting, false);
    this.#owesGreeting = false;
    this.#owesReply = false;
    this.#turns.askToSpeak();
  }

  /** Handles the loss of the client. Audio that the client has not played counts as not heard. */
  clientDetached(): void {
    this.#turns.clientLeft();
  }

  get configuration(): TransportConfiguration {
    return this.#configurationOf(this.#core.agents.current.name);
  }

  get isIdle(): boolean {
    return this.#turns.isIdle;
  }

  /** Returns the commands that send the whole conversation to a new model. */
  history(): readonly TransportCommand[] {
    const { records, notes } = this.#core;
    return replay(records.conversation.toReplay(), this.#options.transport.capabilities, notes);
  }

  knownHistory(): readonly TransportCommand[] {
    return this.history().filter((command) => !this.#turns.memory.isQueued(command));
  }

  connectionReady(pending: readonly TransportCommand[]): void {
    this.#sendPending(pending);
    this.#core.receive('session', { type: 'transport.ready' });
    this.#sendKeptAudio();
    this.#turns.next();
    this.#watchForClients();
  }

  /** Handles the switch to another connection, for another agent or because the previous one is about to end. */
  connectionReplaced(pending: readonly TransportCommand[]): void {
    this.#modelLost();
    // The messages that the model lacks are sent first, before any offer.
    this.#sendPending(pending);
    this.#core.receive('session', { type: 'transport.replaced' });
    this.#sendKeptAudio();
    this.#turns.next();
  }

  /** Called when the connection in use is closed as planned. The session continues on another one. */
  connectionRenewing(): void {
    this.#modelLost();
    this.#core.receive('session', { type: 'transport.renewing' });
  }

  transferAnswered(error: Failure | null): void {
    const transferId = this.#transferId;
    this.#core.receive('session', { type: 'transfer.ended', transferId, error });
  }

  connectionLost({ reason, retryable, code }: ConnectionClosed): void {
    const { host, unit } = this.#core;
    this.#modelLost();
    this.#turns.callsLost();
    const { transport, reconnectDelayMs, maxReconnectDelayMs } = this.#options;
    const message = `The connection to ${transport.name} was lost (${code ?? 'no code'}): ${reason}`;
    const { context, value } = unit.session.snapshot;
    // The loss of a connection that never became ready is reported when the session rests.
    if (retryable && value.connection === 'active' && code !== null && !QUIET_CODES.has(code))
      this.#closedByProvider(message);
    const jitter = host.environment.random.next();
    const limits = { baseDelayMs: reconnectDelayMs, maxDelayMs: maxReconnectDelayMs };
    const delayMs =
      restMs(context, Math.max(maxReconnectDelayMs, MIN_REST_MS), jitter) ??
      backoffMs(limits, context.failures + 1, jitter);
    this.#core.receive('session', {
      type: 'transport.lost',
      error: {
        code: 'TRANSPORT_LOST',
        message,
        retryable,
      },
      retryInMs: retryable ? Math.round(delayMs) : null,
    });
  }

  /**
   * Reports once that the provider closes every connection soon after opening, as Gemini does when the quota is
   * exhausted.
   */
  #closedByProvider(message: string): void {
    const now = this.#core.host.environment.clock.now();
    const { text, at, isReported } = this.#closing;
    const isAgain = message === text && now - at < SOON_MS;
    this.#closing = { text: message, at: now, isReported: isAgain };
    if (isAgain && !isReported)
      this.#core.reportError(
        new ProviderError('TRANSPORT_LOST', message, { retryable: true }),
        'transport',
      );
  }

  handle(event: TransportEvent): void {
    const { host, hooks, projection, agents } = this.#core;
    if (event.type === 'usage.reported') {
      const { transport } = this.#options;
      const { type: _, raw: __, ...counted } = event;
      reportUsage(this.#core, {
        provider: transport.name,
        modelId: transport.modelId ?? transport.name,
        name: agents.current.name,
        counted,
      });
    } else if (event.type === 'limits.reported') {
      const limits = event.limits.map(({ name, limit, remaining, resetInMs }) => ({
        name,
        limit,
        remaining,
        resetInMs,
      }));
      projection.emit({ type: 'limits.changed', limits });
      callSafely(host, 'hook onLimits', () => hooks.onLimits?.({ limits }));
    } else this.#turns.handle(event);
  }

  handleAudio(frame: AudioFrame): void {
    this.#turns.handleFrame(frame);
  }

  /** Returns this agent's instructions and tools for the model. */
  #configurationOf(agentName: string): TransportConfiguration {
    const { agents } = this.#core;
    return {
      instructions: agents.instructionsOf(agentName),
      tools: agents.standingToolsOf(agentName).map(({ definition, jsonSchema }) => ({
        name: definition.name,
        description: definition.description,
        parameters: jsonSchema,
      })),
    };
  }

  /** Handles the loss of a model. Audio without reported words is sent to the next model. */
  #modelLost(): void {
    const isHeardAgain = this.#connections.keepSentAudio(this.#turns.unheardMs);
    this.#turns.connectionLost(isHeardAgain);
  }

  #sendPending(pending: readonly TransportCommand[]): void {
    this.#turns.memory.clearQueue();
    for (const command of pending) this.#connections.send(command);
  }

  /** Sends the stored user audio to the current model. */
  #sendKeptAudio(): void {
    for (const frame of this.#connections.takeKeptAudio()) this.userSpoke(frame);
  }

  /**
   * Reports once that a delivery or question is due but no client has ever attached. Deliveries wait for a client, so
   * without `attach()` in the app, the user would hear only silence.
   */
  #watchForClients(): void {
    if (this.#hasAttached || this.#hasWatched) return;
    this.#hasWatched = true;
    const { host, projection, unit } = this.#core;
    let isLate = false;
    const check = (): void => {
      const { pending } = unit.outbox.snapshot.context;
      const isDue = this.#owesGreeting || this.#owesReply || pending.length > 0;
      if (!isLate || !isDue) return;
      this.#stopWatching?.();
      const message =
        `Something is due, and no client has attached for ${UNATTENDED_MS / 1000} s: nothing is told before one does. ` +
        'Call session.attach() when a client listens, and the function that it returns when the client leaves.';
      this.#core.reportError(new ConfigurationError('NOBODY_ATTACHED', message), 'voice output');
    };
    const late = (): void => {
      isLate = true;
      check();
    };
    const { scheduler } = host.environment;
    const cancel = scheduler.schedule(late, UNATTENDED_MS, { isBackground: true });
    const changes = projection.events.subscribe(({ type }) => {
      if (type === 'delivery.changed') check();
    });
    this.#stopWatching = () => {
      this.#stopWatching = null;
      cancel();
      changes.unsubscribe();
    };
  }
}
