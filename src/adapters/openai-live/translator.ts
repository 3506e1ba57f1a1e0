// Translates between the port and the wire, both ways: commands become client events,
// server events become transport events and frames of sound. Pure of sockets.
//
// Owns: what belongs to which delegation, and what a command is on a wire where the model
// answers by itself and can only be told. Does not: infer turns (`spoken-responses.ts`,
// `heard-utterances.ts`), attribute (`requests.ts`), split texts (`appends.ts`).
//
// OPENAI-LIVE-TRANSLATOR-1. What the model shall know is told as thinking, what it shall say as commentary. Only
//     that it shall speak now, after a request that came to nothing, is told as an instruction
//     too: those may break into what it says. Results of tools are never instructions.
// OPENAI-LIVE-TRANSLATOR-2. An answer of a tool belongs to its delegation, and is said unless it shall only be known.
//     One from before this connection belongs to none, since the server knows only its own,
//     and is only known.
// OPENAI-LIVE-TRANSLATOR-3. A delegation ends what the user was saying: its words are final before it is reported.
// OPENAI-LIVE-TRANSLATOR-4. A command that this wire does not know (what can't be shown, deleted, cut) is silence.

import { decodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type { Environment } from '../../actors/ports/environment.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { TransportCommand, TransportEvent } from '../../voice/connection/transport.ts';
import { BoundedMap } from '../socket/bounded-map.ts';
import { Appends, type AppendEvent } from './appends.ts';
import { HeardUtterances, type Fragment } from './heard-utterances.ts';
import { FOLLOW_NOW, TAKEN_CARE_OF, speakNow, toldAs } from './model-words.ts';
import { Requests, nothingSaid } from './requests.ts';
import { SpokenResponses } from './spoken-responses.ts';
import { MAX_APPEND_TOKENS, estimateTokens } from './tokens.ts';
import type { ServerEvent } from './wire/index.ts';

/** How long what the wire does not say is waited for. In milliseconds. */
export interface TurnTimes {
  readonly responseSilenceMs: number;
  readonly responseStallMs: number;
  readonly utterancePauseMs: number;
  readonly turnPauseMs: number;
  readonly requestTimeoutMs: number;
  readonly causeMs: number;
}

export interface TranslatorOptions {
  readonly times: TurnTimes;
  readonly sampleRateHz: number;
  readonly environment: Environment;
  readonly notes: NoteWriter;
  readonly newEventId: () => string;
  /** Sends what waited until the model was silent. */
  readonly send: (events: readonly AppendEvent[]) => void;
  readonly emit: (event: TransportEvent) => void;
  readonly emitAudio: (frame: AudioFrame) => void;
  /** Milliseconds of sound that the server got, as milliseconds of sound that the session gave. */
  readonly toSessionMs: (serverMs: number) => number;
  /** Takes secrets out of what the server says. */
  readonly redact: (text: string) => string;
}

const REMEMBERED_CALLS = 256;
const REMEMBERED_EVENTS = 256;

export class Translator {
  readonly #options: TranslatorOptions;
  readonly #appends: Appends;
  readonly #requests: Requests;
  readonly #responses: SpokenResponses;
  readonly #utterances: HeardUtterances;
  /** By call id: the delegation that it is part of. */
  readonly #delegationOfCall = new BoundedMap<string, string>(REMEMBERED_CALLS);
  readonly #delegations = new BoundedMap<string, true>(REMEMBERED_EVENTS);
  readonly #spokenFragments = new BoundedMap<string, true>(REMEMBERED_EVENTS);
  /** The delegation of the answer that was given last, for a request that follows it at once. */
  #subject: string | null = null;

  constructor(options: TranslatorOptions) {
    this.#options = options;
    const { times, environment, emit, emitAudio, sampleRateHz, toSessionMs } = options;
    this.#appends = new Appends(options.newEventId, options.notes);
    this.#requests = new Requests(
      environment,
      { timeoutMs: times.requestTimeoutMs, causeMs: times.causeMs },
      {
        isSpeaking: () => this.#responses.isSpeaking,
        lapsed: (responseKey, reason) => emit(nothingSaid(environment, responseKey, reason)),
      },
    );
    this.#responses = new SpokenResponses(
      {
        sampleRateHz,
        silenceMs: times.responseSilenceMs,
        stallMs: times.responseStallMs,
        turnMs: times.turnPauseMs,
      },
      {
        environment,
        emit,
        emitAudio,
        claim: () => {
          this.#utterances.modelBegins();
          return this.#requests.claim();
        },
        turned: () => this.#utterances.reconsider(),
        fellSilent: () => this.#requests.reconsider(),
        isUserSpeaking: () => this.#utterances.isSpeaking,
      },
    );
    this.#utterances = new HeardUtterances(
      { pauseMs: times.utterancePauseMs, turnMs: times.turnPauseMs },
      { environment, emit, toSessionMs, isModelHeard: () => this.#responses.isHeard },
    );
  }

  /** What the server has not taken in yet, as texts. */
  get untaken(): readonly string[] {
    return this.#appends.untaken;
  }

  /** What the model shall know. */
  tell(text: string): readonly AppendEvent[] {
    return this.#appends.say('thinking', text, null, true);
  }

  /** What to send for a command; nothing where there is nothing to say (OPENAI-LIVE-TRANSLATOR-4). */
  toWire(command: TransportCommand): readonly AppendEvent[] {
    const subject = this.#subject;
    this.#subject = null;
    switch (command.type) {
      case 'message.add':
      case 'tool.recall':
        return this.tell(toldAs(command));
      case 'tool.answer':
        return this.#answer(command);
      case 'delegation.accept':
        return this.#accept(command.delegationId, command.callIds);
      case 'delegation.answer':
        this.#requests.otherCause();
        return this.#appends.say('commentary', command.text, command.delegationId, true);
      case 'response.request':
        this.#request(command, subject);
        return [];
      case 'response.cancel':
        this.#requests.withdraw(null);
        if (!this.#responses.cancel()) this.#requests.cancel();
        return [];
      case 'session.configure':
        this.#options.emit({
          type: 'session.refused',
          code: 'IMMUTABLE_SESSION',
          message: 'The instructions of a Live session cannot change: it takes a new connection',
        });
        return [];
      // Its words are what makes an utterance here.
      case 'utterance.end':
        this.#utterances.end();
        return [];
      case 'response.withdraw':
        this.#requests.withdraw(command.responseKey);
        return [];
      case 'image.add':
      case 'item.delete':
      case 'playout.truncate':
        return [];
    }
  }

  /** Hands on what a server event means. How the session begins and ends means nothing here. */
  fromWire(event: ServerEvent): void {
    switch (event.type) {
      case 'session.started':
      case 'session.closed':
        return;
      case 'session.output_audio.delta':
        return this.#responses.sound(decodePcm16Base64(event.delta));
      case 'session.output_transcript.delta':
        return this.#onWordsOfModel(event);
      case 'session.input_transcript.delta':
        return this.#onWordsOfUser(event);
      case 'session.delegation.created':
        return this.#onDelegation(event.delegation);
      case 'session.instructions.appended':
        return this.#onAppended('instructions', event.client_event_id);
      case 'session.thinking.appended':
        return this.#onAppended('thinking', event.client_event_id);
      case 'session.commentary.appended':
        return this.#onAppended('commentary', event.client_event_id);
      case 'session.usage.updated':
        return this.#options.emit({
          type: 'usage.reported',
          inputTokens: null,
          outputTokens: null,
          raw: event.usage,
        });
      case 'error':
        return this.#onError(event);
    }
  }

  /** The connection has ended: nothing is inferred any more. */
  stop(): void {
    this.#requests.stop();
    this.#responses.stop();
    this.#utterances.stop();
  }

  #accept(delegationId: string, callIds: readonly string[]): readonly AppendEvent[] {
    for (const callId of callIds) this.#delegationOfCall.set(callId, delegationId);
    // Nothing will ever be said about it: the model shall neither wait nor announce it.
    if (callIds.length > 0) return [];
    const told = this.#options.notes.text(TAKEN_CARE_OF, `${delegationId} taken care of`);
    return this.#appends.say('thinking', told, delegationId, false);
  }

  #answer(command: Extract<TransportCommand, { type: 'tool.answer' }>): readonly AppendEvent[] {
    const delegationId = this.#delegationOfCall.get(command.callId) ?? null;
    // What is told again on a new connection has been said before.
    const isSpoken = command.silent !== true && delegationId !== null;
    if (isSpoken) this.#requests.otherCause();
    else this.#subject = delegationId;
    return isSpoken
      ? this.#appends.say('commentary', command.output, delegationId, true)
      : this.#appends.say('thinking', toldAs(command), delegationId, true);
  }

  #request(
    command: Extract<TransportCommand, { type: 'response.request' }>,
    subject: string | null,
  ): void {
    const { responseKey, instructions, about, insist = false } = command;
    const text = speakNow(instructions, about);
    const fits = estimateTokens(text) <= MAX_APPEND_TOKENS;
    this.#requests.ask(responseKey, () => {
      const events = [
        ...(fits
          ? []
          : this.#appends.say('thinking', `${instructions}\n\n${about}`, subject, false)),
        ...this.#appends.say('commentary', fits ? text : FOLLOW_NOW, subject, false),
        ...(insist ? this.#appends.say('instructions', FOLLOW_NOW, subject, false) : []),
      ];
      this.#options.send(events);
      return events.at(-1)?.event_id ?? '';
    });
  }

  #onWordsOfModel(fragment: Fragment): void {
    const { event_id: eventId, delta, start_ms: startMs } = fragment;
    if (this.#spokenFragments.has(eventId)) return;
    this.#spokenFragments.set(eventId, true);
    this.#responses.words(delta, startMs);
  }

  #onWordsOfUser(fragment: Fragment): void {
    if (!this.#utterances.words(fragment)) return;
    this.#requests.otherCause();
    this.#responses.userSpoke();
  }

  #onDelegation({ id, target }: { readonly id: string; readonly target: string }): void {
    if (target !== 'client' || this.#delegations.has(id)) return;
    this.#delegations.set(id, true);
    // What it says already is what it says to that.
    if (!this.#responses.isSpeaking) this.#requests.otherCause();
    this.#utterances.end();
    this.#options.emit({ type: 'delegation.created', delegationId: id });
  }

  #onAppended(
    channel: Parameters<Appends['accepted']>[0],
    clientEventId: string | null | undefined,
  ): void {
    const ticket = this.#appends.accepted(channel, clientEventId);
    if (ticket !== null) this.#requests.accepted(ticket);
  }

  #onError(event: Extract<ServerEvent, { type: 'error' }>): void {
    const { code, type, message } = event.error;
    const eventId = event.error.client_event_id ?? event.client_event_id;
    const ticket = eventId ? this.#appends.refused(eventId) : null;
    // Moderation cuts off what is being said, and says so in an error that answers nothing.
    if (!eventId) this.#responses.trouble();
    this.#options.emit({
      type: 'transport.error',
      code: code ?? type,
      message: this.#options.redact(message),
      responseKey: ticket === null ? null : this.#requests.refused(ticket),
      raw: event,
    });
  }
}
