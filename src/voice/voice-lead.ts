// The lead agent of a voice session: a voice model behind a transport. It is the only
// one that asks the model to speak, so two responses never collide.
//
// Owns:     the connection, the one response under way, and what is responded to next.
// Does not: decide when an offer may be said (outbox) or who an utterance is for
//           (session), run tools, or play audio.
//
// Invariants
//   F1. One response at a time. What asks for another one meanwhile is answered by the next.
//   F2. Nothing is asked of the model while the user speaks, or before it is known what
//       they said and to whom (for `settleTimeoutMs` at most).
//   F3. The user's voice stops ours at once; what the model remembers is what was heard.
//   F4. An offer ends in exactly one of: heard, interrupted, failed.
//   F5. Interrupting the voice cancels no subagent, unless it wants that (`onBargeIn`).

import { Subject, type Observable } from 'rxjs';
import type { Lead, Offer, Utterance } from '../actors/session/lead.ts';
import { overheardNote, OWED_REPLY_NOTE } from '../actors/session/prompts.ts';
import type { LeadSession } from '../actors/session/session-parts.ts';
import { Watchdog } from '../actors/session/watchdog.ts';
import { callSafely } from '../actors/runtime/host.ts';
import { messageOf, ProviderError } from '../errors.ts';
import { Attempt } from './attempt.ts';
import { frameDurationMs, type AudioFrame } from './audio-frame.ts';
import type { Played } from './playout.ts';
import { replay } from './replay.ts';
import { Speech } from './speech.ts';
import { offerInstructions } from './speech-prompts.ts';
import type {
  Transport,
  TransportCommand,
  TransportConnection,
  TransportEvent,
} from './transport.ts';
import { Utterances } from './utterances.ts';
import { VoiceTranscript } from './voice-transcript.ts';

export interface VoiceLeadOptions {
  readonly transport: Transport;
  /** So much of an item's audio must have been played for it to count as heard. */
  readonly heardFraction: number;
  /** After a lost connection, in milliseconds; doubles each time up to `maxReconnectDelayMs`. */
  readonly reconnectDelayMs: number;
  readonly maxReconnectDelayMs: number;
  /** The client reports what it had played within this time after it was told to stop. */
  readonly clearReportMs: number;
  /** A response that shows no sign of life for so long has failed. */
  readonly responseTimeoutMs: number;
  /** A transcript may come so long after the utterance. */
  readonly settleTimeoutMs: number;
}

/** A response that was cancelled says so within this time, or is taken as ended. */
const CANCEL_GRACE_MS = 3000;

type Ended = Extract<TransportEvent, { type: 'response.ended' }>;

interface Response {
  readonly key: string;
  id: string | null;
  readonly attempt: Attempt | null;
  /** We have asked for its end. */
  isCancelled: boolean;
}

export class VoiceLead implements Lead {
  readonly #core: LeadSession;
  readonly #options: VoiceLeadOptions;
  readonly #audioOut = new Subject<AudioFrame>();
  readonly #speech: Speech;
  readonly #transcript: VoiceTranscript;
  readonly #watchdog: Watchdog;
  readonly #settling: Watchdog;
  readonly #utterances = new Utterances();
  /** Calls of the model that it gets an answer to at once. */
  readonly #awaited = new Set<string>();
  readonly #cancelledResponses = new Set<string>();
  #connection: TransportConnection | null = null;
  #response: Response | null = null;
  #wantsReply = false;
  /** A reply was cut off for something urgent: it is given afterwards. */
  #owesReply = false;
  #hasConnected = false;
  #hasGreeted = false;
  #replies = 0;

  constructor(core: LeadSession, options: VoiceLeadOptions) {
    this.#core = core;
    this.#options = options;
    this.#transcript = new VoiceTranscript(core);
    this.#watchdog = new Watchdog(core.host.environment, () => this.#overdue());
    this.#settling = new Watchdog(core.host.environment, () => {
      this.#utterances.wordsAreOverdue();
      this.#next();
    });
    const tell = (type: string): void => core.receive('session', { type });
    this.#speech = new Speech(
      {
        started: () => tell('playout.started'),
        drained: () => tell('playout.drained'),
        begun: (attempt) => this.#toOutbox('delivery.playing', attempt),
        heard: ({ offer: { generation } }) =>
          core.receive('outbox', { type: 'delivery.heard', generation, grade: 'played' }),
        interrupted: (attempt) => this.#toOutbox('delivery.interrupted', attempt),
        clear: () => core.projection.emit({ type: 'playout.clear' }),
        cut: (item) => this.#truncate(item),
        settled: () => this.#next(),
      },
      core.host.environment,
      options.clearReportMs,
    );
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
    // Whatever an adapter sends, it must not bring the process down: an observer that throws would.
    const guarded = <T>(take: (value: T) => void): ((value: T) => void) => {
      return (value) => {
        if (isCurrent()) callSafely(this.#core.host, 'transport', () => take(value));
      };
    };
    connection.audio.subscribe(guarded((frame) => this.#modelSpoke(frame)));
    connection.events.subscribe({
      next: guarded((event) => this.#happened(event)),
      error: guarded((error) =>
        this.#closed({
          type: 'transport.closed',
          code: null,
          reason: messageOf(error),
          retryable: true,
        }),
      ),
    });
  }

  disconnect(): void {
    const connection = this.#connection;
    this.#connection = null;
    this.#watchdog.stop();
    this.#settling.stop();
    this.#speech.stopWaiting();
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
    this.#speech.played(itemId, playedMs);
  }

  offer(offer: Offer): void {
    const attempt = new Attempt(offer, this.#options.heardFraction);
    if (offer.answersCallId !== null)
      this.#send({ type: 'tool.answer', callId: offer.answersCallId, output: offer.prompt });
    else this.#tellOnce(offer);
    // Where the journal takes its time, somebody may have begun to speak meanwhile.
    if (this.#response !== null || this.#utterances.hasFloor) {
      this.#toOutbox('delivery.interrupted', attempt);
      return;
    }
    this.#speech.begin(attempt);
    this.#request(attempt.responseKey, attempt, offerInstructions(offer));
  }

  /** What was offered before is in the model's conversation already. */
  #tellOnce({ deliveryId, prompt: text }: Offer): void {
    const itemId = `${deliveryId}.note`;
    if (this.#core.books.conversation.get(itemId)) return;
    this.#transcript.note(text, itemId);
    this.#send({ type: 'message.add', itemId, role: 'system', text });
  }

  interrupt(): void {
    this.#owesReply ||= this.#response !== null && this.#response.attempt === null;
    this.#stopSpeaking();
    // While only a tool works there is a pause.
    if (this.#response === null) this.#core.receive('session', { type: 'response.ended' });
  }

  abandon(generation: number): void {
    if (this.#speech.attempt?.offer.generation !== generation) return;
    this.#speech.giveUp();
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
    const itemId = this.#transcript.note(text);
    this.#send({ type: 'message.add', itemId, role: 'system', text });
  }

  heardUser({ id, text, typed }: Utterance): void {
    if (typed) {
      this.#send({ type: 'message.add', itemId: id, role: 'user', text });
      this.#stopSpeaking();
    }
    this.#utterances.understood(id);
    this.#wantsReply = true;
    this.#owesReply = false;
    this.#core.receive('session', { type: 'response.requested' });
    if (!typed) this.#core.receive('session', { type: 'utterance.settled' });
    this.#next();
  }

  overheard({ id, text, typed }: Utterance, subagentName: string): void {
    if (!typed && this.#options.transport.capabilities.deletesItems)
      this.#send({ type: 'item.delete', itemId: id });
    this.#utterances.understood(id);
    this.note(overheardNote(text, subagentName));
    if (!typed) this.#core.receive('session', { type: 'utterance.settled' });
    this.#next();
  }

  /** Somebody is there. The first one is greeted; before that nobody would hear it. */
  clientCame(): void {
    const { greeting } = this.#core.agent;
    if (greeting === undefined || this.#hasGreeted || !this.#hasConnected) return;
    this.#hasGreeted = true;
    this.note(`[SYSTEM: ${greeting}]`);
    this.#wantsReply = true;
    this.#next();
  }

  /** The client is gone: what it has not played nobody will hear. */
  clientLeft(): void {
    this.#utterances.giveUpWaiting();
    this.#speech.stopWaiting();
    this.#speech.giveUp();
    this.#stopSpeaking();
    this.#speech.stopWaiting();
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
        core.receive('session', { type: 'utterance.started' });
        this.#bargeIn();
        break;
      }
      case 'utterance.ended':
        this.#utterances.ended(event.utteranceId);
        this.#settling.watch(this.#options.settleTimeoutMs);
        core.receive('session', { type: 'utterance.ended' });
        break;
      case 'utterance.transcribed':
        this.#transcribed(event.utteranceId, event.text, event.final);
        break;
      case 'utterance.untranscribed':
        core.reportError(new Error(event.reason), 'transcription');
        this.#utterances.understood(event.utteranceId);
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
        this.#transcript.modelSaid(event);
        break;
      case 'tool.called':
        // One that is known is the same message again: it has its answer, or will have it.
        if (core.books.calls.has(event.callId) || core.books.conversation.get(event.callId)) break;
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
          this.#fail(event.responseKey, event.code);
        break;
    }
  }

  #ready(): void {
    const core = this.#core;
    for (const command of replay(this.#hasConnected ? core.books.conversation.toReplay() : []))
      this.#send(command);
    core.receive('session', { type: 'transport.ready' });
    this.#hasConnected = true;
    if (core.unit.session.getSnapshot().matches({ client: 'attached' })) this.clientCame();
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
    this.#speech.completedAll();
    const { attempt } = this.#speech;
    if (attempt && this.#response?.attempt === attempt) {
      this.#speech.giveUp();
      this.#toOutbox('delivery.interrupted', attempt);
    }
    // The words that were still to be answered are part of what the next connection is told.
    this.#wantsReply = this.#wantsReply || (this.#response !== null && attempt === null);
    this.#response = null;
    this.#watchdog.stop();
    this.#settling.stop();
    this.#utterances.reset();
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
      this.#transcript.userPartial(utteranceId, text, startedAt);
      return;
    }
    if (text.trim() === '') {
      // A noise, not words: nobody is answered.
      this.#utterances.understood(utteranceId);
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
      // It was called off before it had a name.
      if (response.isCancelled) this.#cancelledResponses.add(responseId);
      if (response.attempt) response.attempt.responseId = responseId;
    }
  }

  #ended(event: Ended): void {
    const response = this.#response;
    const isOurs = response && (event.responseKey === null || event.responseKey === response.key);
    // A wire that cannot cancel goes on to the end; nobody heard that.
    const wasCancelled = this.#cancelledResponses.delete(event.responseId);
    if (isOurs) {
      this.#response = null;
      this.#watchdog.stop();
      this.#judge(response.attempt, wasCancelled ? { ...event, status: 'cancelled' } : event);
      if (this.#owesReply && response.attempt && event.status === 'completed') {
        this.#owesReply = false;
        this.note(OWED_REPLY_NOTE);
        this.#wantsReply = true;
      }
    }
    this.#speech.completed(event.responseId);
    this.#next();
  }

  /** What the end of the response means for the offer that it was to say. */
  #judge(attempt: Attempt | null, { status, audio }: Ended): void {
    if (!attempt || this.#speech.attempt !== attempt) return;
    if (status === 'completed') attempt.ended(audio);
    if (status === 'completed' && attempt.hasAudio) return;
    this.#speech.giveUp();
    this.#toOutbox(status === 'cancelled' ? 'delivery.interrupted' : 'delivery.failed', attempt);
  }

  #modelSpoke(frame: AudioFrame): void {
    if (this.#cancelledResponses.has(frame.responseId ?? '')) return;
    this.#watchdog.sign();
    this.#speech.sent(frame);
    this.#audioOut.next(frame);
  }

  #bargeIn(): void {
    const isSpeaking = this.#response !== null || !this.#speech.isSilent;
    if (!isSpeaking) return;
    for (const subagent of this.#core.delegation.live)
      if (subagent.definition.onBargeIn === 'cancel') subagent.cancel('the user broke in');
    this.#stopSpeaking();
  }

  /** Silence, now: the response in the making, and what is sent but not played. */
  #stopSpeaking(): void {
    const response = this.#response;
    if (response && !response.isCancelled) {
      response.isCancelled = true;
      if (response.id !== null) this.#cancelledResponses.add(response.id);
      if (this.#options.transport.capabilities.cancelsResponses) {
        this.#send({ type: 'response.cancel' });
        this.#watchdog.watch(CANCEL_GRACE_MS);
      }
    }
    const { attempt } = this.#speech;
    this.#speech.stop(attempt !== null && response?.attempt === attempt);
  }

  /** The model shall remember what was heard, not what was made. */
  #truncate(cut: Played): void {
    const { itemId, playedMs } = cut;
    if (this.#options.transport.capabilities.truncatesAudio)
      this.#send({ type: 'playout.truncate', itemId, playedMs });
    this.#transcript.cut(cut);
  }

  /** Asks for the reply that is wanted, if nothing is in its way. */
  #next(): void {
    if (this.#response || this.#utterances.hasFloor || this.#connection === null) return;
    if (this.#wantsReply && this.#awaited.size === 0) {
      this.#wantsReply = false;
      this.#replies += 1;
      this.#request(`reply:${this.#replies}`, null);
      return;
    }
    if (!this.#wantsReply && this.#awaited.size === 0)
      this.#core.receive('session', { type: 'response.ended' });
  }

  #request(responseKey: string, attempt: Attempt | null, instructions?: string): void {
    this.#response = { key: responseKey, id: null, attempt, isCancelled: false };
    this.#watchdog.watch(this.#options.responseTimeoutMs);
    this.#core.receive('session', { type: 'response.requested' });
    this.#send({
      type: 'response.request',
      responseKey,
      ...(instructions === undefined ? {} : { instructions }),
    });
  }

  /** The model neither goes on nor ends: whoever waits for it shall not wait for ever. */
  #overdue(): void {
    const response = this.#response;
    if (!response) return;
    if (!response.isCancelled) {
      this.#core.reportError(
        new ProviderError(
          'RESPONSE_TIMEOUT',
          `The model showed no sign of life for ${this.#options.responseTimeoutMs} ms`,
          { retryable: true },
        ),
        'transport',
      );
      this.#stopSpeaking();
      if (this.#options.transport.capabilities.cancelsResponses) return;
    }
    this.#fail(response.key, 'timeout');
  }

  /** Nothing more will be heard of this response. */
  #fail(responseKey: string, reason: string): void {
    this.#ended({
      type: 'response.ended',
      responseId: this.#response?.id ?? '',
      responseKey,
      status: 'failed',
      reason,
      audio: [],
    });
  }

  #toOutbox(type: string, { offer }: Attempt): void {
    this.#core.receive('outbox', { type, generation: offer.generation });
  }

  #send(command: TransportCommand): void {
    this.#connection?.send(command);
  }
}
