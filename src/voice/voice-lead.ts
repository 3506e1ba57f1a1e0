// The lead agent of a voice session: a voice model behind a transport. It is the only
// one that asks the model to speak, so two responses never collide.
//
// Owns:     the connection, the one response under way, and what is responded to next.
// Does not: decide when an offer may be said (outbox) or who an utterance is for
//           (session), run tools, or play audio.
//
// Invariants
//   F1. One response at a time. What asks for another one meanwhile is answered by the next.
//   F2. Nothing is asked of the model while the user speaks.
//   F3. The user's voice stops ours at once; what the model remembers is what was heard.
//   F4. An offer ends in exactly one of: heard, interrupted, failed.
//   F5. Interrupting the voice cancels no subagent, unless it wants that (`onBargeIn`).

import { Subject, type Observable } from 'rxjs';
import type { Lead, Offer, Utterance } from '../actors/session/lead.ts';
import { overheardNote } from '../actors/session/prompts.ts';
import type { SessionCore } from '../actors/session/session-core.ts';
import { Attempt } from './attempt.ts';
import { frameDurationMs, type AudioFrame } from './audio-frame.ts';
import { Playout, type Played } from './playout.ts';
import { replay } from './replay.ts';
import { offerInstructions } from './speech-prompts.ts';
import type {
  Transport,
  TransportCommand,
  TransportConnection,
  TransportEvent,
} from './transport.ts';
import { Utterances } from './utterances.ts';

export interface VoiceLeadOptions {
  readonly transport: Transport;
  /** So much of an item's audio must have been played for it to count as heard. */
  readonly heardFraction: number;
  /** After a lost connection, in milliseconds; doubles each time up to `maxReconnectDelayMs`. */
  readonly reconnectDelayMs: number;
  readonly maxReconnectDelayMs: number;
  /** The client reports what it had played within this time after it was told to stop. */
  readonly clearReportMs: number;
}

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

interface Response {
  readonly key: string;
  id: string | null;
  readonly attempt: Attempt | null;
}

export class VoiceLead implements Lead {
  readonly #core: SessionCore;
  readonly #options: VoiceLeadOptions;
  readonly #audioOut = new Subject<AudioFrame>();
  readonly #playout = new Playout();
  readonly #utterances = new Utterances();
  /** Calls of the model that it gets an answer to at once. */
  readonly #awaited = new Set<string>();
  readonly #cancelledResponses = new Set<string>();
  #connection: TransportConnection | null = null;
  #response: Response | null = null;
  /** The offer whose audio is generated or played. */
  #attempt: Attempt | null = null;
  #wantsReply = false;
  #userSpeaks = false;
  #hasConnected = false;
  #numbers = 0;
  /** What was cut off and still waits for the client's word on how much was played. */
  #cut: readonly Played[] = [];
  #endCut: (() => void) | null = null;

  constructor(core: SessionCore, options: VoiceLeadOptions) {
    this.#core = core;
    this.#options = options;
  }

  get audioOut(): Observable<AudioFrame> {
    return this.#audioOut.asObservable();
  }

  connect(): void {
    const { transport } = this.#options;
    const connection = transport.connect(
      {
        instructions: this.#core.agent.instructions,
        tools: [...this.#core.tools].map(([name, { definition, jsonSchema }]) => ({
          name,
          description: definition.description,
          parameters: jsonSchema,
        })),
      },
      { environment: this.#core.host.environment },
    );
    this.#connection = connection;
    this.#utterances.reset();
    const isCurrent = (): boolean => this.#connection === connection;
    connection.audio.subscribe((frame) => {
      if (isCurrent()) this.#modelSpoke(frame);
    });
    connection.events.subscribe((event) => {
      if (isCurrent()) this.#happened(event);
    });
  }

  disconnect(): void {
    const connection = this.#connection;
    this.#connection = null;
    void connection?.close();
    this.#audioOut.complete();
  }

  /** Sound of the user, at the transport's rate. */
  userSpoke(frame: AudioFrame): void {
    this.#utterances.sent(frameDurationMs(frame));
    this.#connection?.sendAudio(frame);
  }

  /** The client's word on what it played. */
  played(itemId: string, playedMs: number): void {
    const cut = this.#cut.find((item) => item.itemId === itemId);
    if (cut) {
      this.#cut = this.#cut.map((item) =>
        item === cut ? { ...item, playedMs: Math.min(Math.max(playedMs, 0), item.sentMs) } : item,
      );
      this.#endCut?.();
      return;
    }
    const attempt = this.#attempt;
    const before = this.#playout.current.find((item) => item.itemId === itemId);
    const over = this.#playout.played(itemId, playedMs);
    if (attempt && before?.responseId === attempt.responseId && attempt.responseId !== null) {
      if (!attempt.hasBegun && playedMs > 0) {
        attempt.hasBegun = true;
        this.#toOutbox('delivery.playing', attempt);
      }
      const now = over.find((item) => item.itemId === itemId)?.playedMs ?? playedMs;
      attempt.played(itemId, now);
    }
    for (const item of over) attempt?.played(item.itemId, item.playedMs);
    this.#checkHeard();
    this.#checkDrained();
  }

  offer(offer: Offer): void {
    const attempt = new Attempt(offer, this.#options.heardFraction);
    this.#attempt = attempt;
    if (offer.answersCallId !== null)
      this.#send({ type: 'tool.answer', callId: offer.answersCallId, output: offer.prompt });
    else if (offer.attempt === 1) this.note(offer.prompt);
    this.#request({ key: attempt.responseKey, id: null, attempt }, offerInstructions(offer));
  }

  interrupt(): void {
    this.#stopSpeaking();
  }

  abandon(generation: number): void {
    if (this.#attempt?.offer.generation !== generation) return;
    this.#attempt = null;
    this.#stopSpeaking();
  }

  answerTool(callId: string, output: unknown, respond: boolean): void {
    this.#send({
      type: 'tool.answer',
      callId,
      output: typeof output === 'string' ? output : JSON.stringify(output ?? null),
    });
    this.#awaited.delete(callId);
    if (respond) this.#wantsReply = true;
    this.#next();
  }

  deferTool(callId: string): void {
    this.#awaited.delete(callId);
    this.#next();
  }

  note(text: string): void {
    this.#numbers += 1;
    const itemId = `note_${this.#numbers}_${this.#core.host.environment.ids.next('n').slice(-6)}`;
    this.#send({ type: 'message.add', itemId, role: 'system', text });
    this.#core.books.conversation = this.#core.books.conversation.add({
      id: itemId,
      role: 'system',
      text,
      at: this.#core.host.environment.clock.now(),
    });
  }

  heardUser({ id, text, typed }: Utterance): void {
    if (typed) {
      this.#send({ type: 'message.add', itemId: id, role: 'user', text });
      this.#stopSpeaking();
    }
    this.#wantsReply = true;
    this.#core.receive('session', { type: 'response.requested' });
    this.#core.receive('session', { type: 'utterance.settled' });
    this.#next();
  }

  overheard({ id, text, typed }: Utterance, subagentName: string): void {
    if (!typed && this.#options.transport.capabilities.deletesItems)
      this.#send({ type: 'item.delete', itemId: id });
    this.note(overheardNote(text, subagentName));
    this.#core.receive('session', { type: 'utterance.settled' });
    this.#next();
  }

  /** The client is gone: what it has not played nobody will hear. */
  clientLeft(): void {
    this.#endCut?.();
    this.#attempt = null;
    this.#stopSpeaking();
  }

  #happened(event: TransportEvent): void {
    const core = this.#core;
    switch (event.type) {
      case 'transport.ready':
        this.#ready();
        break;
      case 'transport.closed':
        this.#closed(event);
        break;
      case 'utterance.started': {
        const now = core.host.environment.clock.now();
        this.#utterances.began(event.utteranceId, event.audioStartMs, now);
        this.#userSpeaks = true;
        core.receive('session', { type: 'utterance.started' });
        this.#bargeIn();
        break;
      }
      case 'utterance.ended':
        this.#userSpeaks = false;
        core.receive('session', { type: 'utterance.ended' });
        break;
      case 'utterance.transcribed':
        this.#transcribed(event.utteranceId, event.text, event.final);
        break;
      case 'utterance.untranscribed':
        core.reportError(new Error(event.reason), 'transcription');
        core.receive('session', { type: 'utterance.settled' });
        this.#next();
        break;
      case 'response.started':
        this.#started(event.responseId, event.responseKey);
        break;
      case 'response.ended':
        this.#ended(event);
        break;
      case 'assistant.transcribed':
        this.#said(event);
        break;
      case 'tool.called':
        this.#awaited.add(event.callId);
        core.tell('calls', {
          type: 'tool.called',
          callId: event.callId,
          name: event.name,
          arguments: event.arguments,
        });
        break;
      case 'transport.error':
        core.reportError(new Error(`${event.code}: ${event.message}`), 'transport');
        if (event.responseKey !== null && event.responseKey === this.#response?.key)
          this.#ended({
            type: 'response.ended',
            responseId: '',
            responseKey: event.responseKey,
            status: 'failed',
            reason: event.code,
            audio: [],
          });
        break;
    }
  }

  #ready(): void {
    const core = this.#core;
    for (const command of replay(this.#hasConnected ? core.books.conversation.toReplay() : []))
      this.#send(command);
    core.receive('session', { type: 'transport.ready' });
    const { greeting } = core.agent;
    if (!this.#hasConnected && greeting !== undefined) {
      this.note(`[SYSTEM: ${greeting}]`);
      this.#wantsReply = true;
    }
    this.#hasConnected = true;
    this.#next();
  }

  #closed({
    reason,
    retryable,
    code,
  }: Extract<TransportEvent, { type: 'transport.closed' }>): void {
    const { environment } = this.#core.host;
    const { failures } = this.#core.unit.session.getSnapshot().context;
    this.#connection = null;
    // No more audio comes of what was being made; what has come goes on playing.
    for (const { responseId } of this.#playout.current) this.#playout.complete(responseId);
    const attempt = this.#attempt;
    if (attempt && this.#response?.attempt === attempt) {
      this.#attempt = null;
      this.#toOutbox('delivery.interrupted', attempt);
    }
    // The words that were still to be answered are part of what the next connection is told.
    this.#wantsReply = this.#wantsReply || (this.#response !== null && attempt === null);
    this.#response = null;
    this.#userSpeaks = false;
    this.#awaited.clear();
    this.#cancelledResponses.clear();
    const { reconnectDelayMs, maxReconnectDelayMs } = this.#options;
    const delayMs = Math.min(reconnectDelayMs * 2 ** failures, maxReconnectDelayMs);
    this.#core.receive('session', {
      type: 'transport.lost',
      error: {
        code: 'TRANSPORT_LOST',
        message: `The connection to ${this.#options.transport.name} was lost (${code ?? 'no code'}): ${reason}`,
        retryable,
      },
      // Jitter: sessions that were cut off together do not come back together.
      retryInMs: retryable ? Math.round(delayMs * (0.5 + environment.random.next() / 2)) : null,
    });
  }

  #transcribed(utteranceId: string, text: string, final: boolean): void {
    const core = this.#core;
    const startedAt = this.#utterances.beganAt(utteranceId) ?? core.host.environment.clock.now();
    if (!final) {
      const item = { id: utteranceId, role: 'user', text, final, at: startedAt } as const;
      core.projection.emit({ type: 'transcript.changed', item });
      return;
    }
    if (text.trim() === '') {
      // A noise, not words: nobody is answered.
      if (this.#options.transport.capabilities.deletesItems)
        this.#send({ type: 'item.delete', itemId: utteranceId });
      core.receive('session', { type: 'utterance.settled' });
      this.#next();
      return;
    }
    core.tell('user', {
      type: 'user.said',
      utteranceId,
      text: text.trim(),
      channel: 'speech',
      startedAt,
    });
  }

  #started(responseId: string, responseKey: string | null): void {
    const response = this.#response;
    if (response && (responseKey === null || responseKey === response.key)) {
      response.id = responseId;
      if (response.attempt) response.attempt.responseId = responseId;
    }
  }

  #ended(event: Ended): void {
    const response = this.#response;
    const isOurs = response && (event.responseKey === null || event.responseKey === response.key);
    this.#cancelledResponses.delete(event.responseId);
    const over = this.#playout.complete(event.responseId);
    for (const item of over) this.#attempt?.played(item.itemId, item.playedMs);
    if (isOurs) {
      this.#response = null;
      this.#judge(response.attempt, event);
    }
    this.#checkHeard();
    this.#next();
    this.#checkDrained();
  }

  /** What the end of the response means for the offer that it was to say. */
  #judge(attempt: Attempt | null, { status, audio }: Ended): void {
    if (!attempt || this.#attempt !== attempt) return;
    if (status === 'completed') attempt.ended(audio);
    if (status === 'completed' && attempt.hasAudio) return;
    this.#attempt = null;
    this.#toOutbox(status === 'cancelled' ? 'delivery.interrupted' : 'delivery.failed', attempt);
  }

  #modelSpoke(frame: AudioFrame): void {
    const { itemId = '', responseId = '' } = frame;
    if (this.#cancelledResponses.has(responseId)) return;
    const wasDrained = this.#playout.isDrained;
    this.#playout.sent(itemId, responseId, frameDurationMs(frame));
    if (wasDrained) this.#core.receive('session', { type: 'playout.started' });
    this.#audioOut.next(frame);
  }

  #said(event: Extract<TransportEvent, { type: 'assistant.transcribed' }>): void {
    const core = this.#core;
    const { itemId, text, final } = event;
    const { conversation } = core.books;
    const at = conversation.get(itemId)?.at ?? core.host.environment.clock.now();
    const begun = conversation.begin({ id: itemId, role: 'assistant', at });
    core.books.conversation = final ? begun.finish(itemId, text) : begun.append(itemId, text);
    const item = core.books.conversation.get(itemId);
    if (item?.role !== 'assistant') return;
    core.projection.emit({
      type: 'transcript.changed',
      item: { id: itemId, role: 'assistant', text: item.text, final, at },
    });
  }

  #bargeIn(): void {
    const isSpeaking = this.#response !== null || !this.#playout.isDrained;
    if (!isSpeaking) return;
    for (const subagent of this.#core.delegation.live)
      if (subagent.definition.onBargeIn === 'cancel') subagent.cancel('the user broke in');
    this.#stopSpeaking();
  }

  /** Silence, now: the response in the making, and what is sent but not played. */
  #stopSpeaking(): void {
    const response = this.#response;
    if (response) {
      if (response.id !== null) this.#cancelledResponses.add(response.id);
      if (this.#options.transport.capabilities.cancelsResponses)
        this.#send({ type: 'response.cancel' });
    }
    if (this.#playout.isDrained) return;
    this.#endCut?.();
    this.#cut = this.#playout.clear();
    this.#core.projection.emit({ type: 'playout.clear' });
    this.#core.receive('session', { type: 'playout.drained' });
    // The client says how much it had played; if it does not, its last report must do.
    const cancel = this.#core.host.environment.scheduler.schedule(
      () => this.#endCut?.(),
      this.#options.clearReportMs,
    );
    this.#endCut = () => {
      cancel();
      this.#endCut = null;
      this.#truncate();
    };
  }

  /** The model shall remember what was heard, not what was made. */
  #truncate(): void {
    const core = this.#core;
    const attempt = this.#attempt;
    for (const { itemId, playedMs, sentMs, responseId } of this.#cut) {
      if (attempt?.responseId === responseId) attempt.played(itemId, playedMs);
      if (this.#options.transport.capabilities.truncatesAudio)
        this.#send({ type: 'playout.truncate', itemId, playedMs });
      const said = core.books.conversation.get(itemId);
      if (said?.role === 'assistant') {
        const text = heardPart(said.text, playedMs / sentMs);
        core.books.conversation = core.books.conversation.interrupt(itemId, {
          audioHeardMs: playedMs,
          text,
        });
        const item = { id: itemId, role: 'assistant', text, final: true, at: said.at } as const;
        core.projection.emit({ type: 'transcript.changed', item: { ...item, interrupted: true } });
      }
      core.projection.emit({ type: 'speech.interrupted', itemId, playedMs });
    }
    this.#cut = [];
    this.#checkHeard();
    if (this.#attempt && this.#response?.attempt !== this.#attempt) {
      const broken = this.#attempt;
      this.#attempt = null;
      this.#toOutbox('delivery.interrupted', broken);
    }
    this.#next();
  }

  #checkHeard(): void {
    const attempt = this.#attempt;
    if (!attempt?.isHeard) return;
    this.#attempt = null;
    if (!attempt.hasBegun) this.#toOutbox('delivery.playing', attempt);
    this.#core.receive('outbox', {
      type: 'delivery.heard',
      generation: attempt.offer.generation,
      grade: 'played',
    });
  }

  #checkDrained(): void {
    if (
      this.#playout.isDrained &&
      this.#core.unit.session.getSnapshot().matches({ playout: 'playing' })
    )
      this.#core.receive('session', { type: 'playout.drained' });
  }

  /** Asks for the reply that is wanted, if nothing is in its way. */
  #next(): void {
    if (this.#response || this.#userSpeaks || this.#connection === null) return;
    if (this.#wantsReply && this.#awaited.size === 0) {
      this.#wantsReply = false;
      this.#numbers += 1;
      this.#request({ key: `reply:${this.#numbers}`, id: null, attempt: null });
      return;
    }
    if (!this.#wantsReply && this.#awaited.size === 0)
      this.#core.receive('session', { type: 'response.ended' });
  }

  #request(response: Response, instructions?: string): void {
    this.#response = response;
    this.#core.receive('session', { type: 'response.requested' });
    this.#send({
      type: 'response.request',
      responseKey: response.key,
      ...(instructions === undefined ? {} : { instructions }),
    });
  }

  #toOutbox(type: string, { offer }: Attempt): void {
    this.#core.receive('outbox', { type, generation: offer.generation });
  }

  #send(command: TransportCommand): void {
    this.#connection?.send(command);
  }
}

/** The words that fit into the part of the audio that was played: speech is even enough for that. */
function heardPart(text: string, fraction: number): string {
  if (fraction >= 1) return text;
  const words = text.split(/(?<=\s)/);
  return words
    .slice(0, Math.floor(words.length * Math.max(0, fraction)))
    .join('')
    .trimEnd();
}
