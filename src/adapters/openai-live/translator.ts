// Translates in both directions: commands become client events, and server events become transport events and audio
// frames. It performs no network I/O.
//
// Owns:     which call belongs to which delegation, and how each command is expressed as texts for a model that speaks
//           on its own. It does not infer or attribute responses (`responses.ts`), infer utterances
//           (`heard-utterances.ts`) or split texts (`appends.ts`).
//
// OPENAI-LIVE-TRANSLATOR-1. Texts that the model should know are sent as thinking, and texts that it should say are
//     sent as commentary. If a request to speak now follows a failed request, it is also sent as an instruction. No
//     other request is sent as an instruction, because instructions may interrupt the model's speech. Tool results are
//     never instructions.
// OPENAI-LIVE-TRANSLATOR-2. A tool result belongs to its delegation and is spoken, unless it is silent. A result from
//     an earlier connection does not belong to any delegation, because the server knows only the delegations of its own
//     session. The result is sent as thinking.
// OPENAI-LIVE-TRANSLATOR-3. A delegation ends the user's utterance. The words are final before the delegation is
//     reported.
// OPENAI-LIVE-TRANSLATOR-4. Commands that this protocol does not have (pictures, deletion, truncation) have no effect.

import { decodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type { TransportCommand } from '../../voice/connection/transport.ts';
import { BoundedMap } from '../socket/bounded-map.ts';
import type { WireConnection } from '../socket/wire.ts';
import { Appends, type AppendEvent, MAX_APPEND_TOKENS, estimateTokens } from './appends.ts';
import { HeardUtterances, type Fragment } from './heard-utterances.ts';
import type { InputClock } from './input-clock.ts';
import { FOLLOW_NOW, TAKEN_CARE_OF, speakNow, toldAs } from './model-words.ts';
import type { OpenaiLiveSettings } from './options.ts';
import { Requests, SpokenResponses } from './responses.ts';
import type { ServerEvent } from './wire.ts';

type Settings = Pick<OpenaiLiveSettings, 'times' | 'sampleRateHz'>;

const REMEMBERED_CALLS = 256;
const REMEMBERED_EVENTS = 256;

export class Translator {
  readonly #connection: WireConnection;
  readonly #notes: NoteWriter;
  readonly #appends: Appends;
  readonly #requests: Requests;
  readonly #responses: SpokenResponses;
  readonly #utterances: HeardUtterances;
  readonly #delegationOfCall = new BoundedMap<string, string>(REMEMBERED_CALLS);
  readonly #delegations = new BoundedMap<string, true>(REMEMBERED_EVENTS);
  readonly #spokenFragments = new BoundedMap<string, true>(REMEMBERED_EVENTS);
  /** The delegation of the latest answer, for a request that directly follows that answer. */
  #subject: string | null = null;
  #lastEventNumber = 0;

  constructor(
    connection: WireConnection,
    settings: Settings,
    inputClock: InputClock,
    notes: NoteWriter,
  ) {
    this.#connection = connection;
    this.#notes = notes;
    this.#appends = new Appends(() => this.newEventId(), notes);
    this.#requests = new Requests(connection, settings.times);
    this.#utterances = new HeardUtterances(connection, inputClock, settings.times);
    this.#responses = new SpokenResponses(connection, settings, this.#requests, this.#utterances);
  }

  newEventId(): string {
    this.#lastEventNumber += 1;
    return `event_${this.#lastEventNumber}`;
  }

  /** The texts that the server has not accepted yet. */
  get untaken(): readonly string[] {
    return this.#appends.untaken;
  }

  /** Returns the events for a text that the model should know. */
  tell(text: string): readonly AppendEvent[] {
    return this.#appends.say('thinking', text, null, true);
  }

  /** Returns the events for a command, or no events if it has no effect (OPENAI-LIVE-TRANSLATOR-4). */
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
        this.#connection.emit({
          type: 'session.refused',
          code: 'IMMUTABLE_SESSION',
          message: 'The instructions of a Live session cannot change: it takes a new connection',
        });
        return [];
      // In this protocol, an utterance consists only of words.
      case 'utterance.end':
        this.#utterances.end();
        return [];
      case 'response.withdraw':
        this.#requests.withdraw(command.responseKey);
        return [];
      case 'image.add':
      case 'item.delete':
      case 'question.expect':
      case 'playout.truncate':
        return [];
    }
  }

  /** Interprets a server event and forwards the result. `liveWire` handles the start and end of the session. */
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
        return this.#connection.emit({
          type: 'usage.reported',
          inputTokens: null,
          outputTokens: null,
          raw: event.usage,
        });
      case 'error':
        return this.#onError(event);
    }
  }

  /** Stops inferring events, because the connection has ended. */
  stop(): void {
    this.#requests.stop();
    this.#responses.stop();
    this.#utterances.stop();
  }

  #accept(delegationId: string, callIds: readonly string[]): readonly AppendEvent[] {
    for (const callId of callIds) this.#delegationOfCall.set(callId, delegationId);
    // If there are no calls, the model must neither wait for results nor announce any.
    if (callIds.length > 0) return [];
    const told = this.#notes.text(TAKEN_CARE_OF, `${delegationId} taken care of`);
    return this.#appends.say('thinking', told, delegationId, false);
  }

  #answer(command: Extract<TransportCommand, { type: 'tool.answer' }>): readonly AppendEvent[] {
    const delegationId = this.#delegationOfCall.get(command.callId) ?? null;
    // A result that is repeated on a new connection has already been spoken on an earlier one.
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
    const { responseKey, instructions, about, insist = false, subject: saidOf = null } = command;
    const text = speakNow(this.#notes, instructions, about);
    const follow = this.#notes.text(FOLLOW_NOW, 'follow now');
    const fits = estimateTokens(text) <= MAX_APPEND_TOKENS;
    this.#requests.ask(
      responseKey,
      () => {
        const events = [
          ...(fits
            ? []
            : this.#appends.say('thinking', `${instructions}\n\n${about}`, subject, false)),
          ...this.#appends.say('commentary', fits ? text : follow, subject, false),
          ...(insist ? this.#appends.say('instructions', follow, subject, false) : []),
        ];
        for (const event of events) this.#connection.send(JSON.stringify(event));
        return events.at(-1)?.event_id ?? '';
      },
      saidOf,
    );
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
    // If the model is speaking, it is already responding to another cause.
    if (!this.#responses.isSpeaking) this.#requests.otherCause();
    this.#utterances.end();
    this.#connection.emit({ type: 'delegation.created', delegationId: id });
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
    // If moderation cuts off the current speech, the server reports an error without an event id.
    if (!eventId) this.#responses.trouble();
    this.#connection.emit({
      type: 'transport.error',
      code: code ?? type,
      message: this.#connection.redact(message),
      responseKey: ticket === null ? null : this.#requests.refused(ticket),
      raw: event,
    });
  }
}
