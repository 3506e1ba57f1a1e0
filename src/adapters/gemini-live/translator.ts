// Translates in both directions: commands become client messages, and server messages become transport events and audio
// frames. It does not perform network I/O.
//
// Owns:     what each field of a message means, and whether the model is busy.
// Does not: keep a connection alive (`gemini-live.ts`), or manage responses and their requests (`responses.ts`),
//           utterances (`user-speech.ts`), calls (`tool-calls.ts`) or the outgoing queue (`outgoing.ts`).
//
// GEMINI-LIVE-TRANSLATOR-1. The parts of one message are handled in chronological order: an interruption, the
//     interrupting user's words, the model's speech, and the end of that speech.
// GEMINI-LIVE-TRANSLATOR-2. An interruption that the client caused does not count as user speech.

import type { NoteWriter } from '../../actors/notes/note-marks.ts';
import type { TransportCommand } from '../../voice/connection/transport.ts';
import type { WireConnection } from '../socket/wire.ts';
import type { ModelTraits } from './models.ts';
import { ModelTurns, Requests } from './responses.ts';
import { Outgoing } from './outgoing.ts';
import type { Resumption } from './resumption.ts';
import { answerTurn, callTurn, messageTurn } from './told-as-text.ts';
import type { ToolCalls } from './tool-calls.ts';
import { UserSpeech } from './user-speech.ts';
import * as wire from './wire.ts';
import type { ServerContent, ServerMessage } from './wire.ts';
import { withoutUndefined } from '../../values/without-undefined.ts';

/** The maximum time that the server may take to react to a client message that interrupts the model. */
const OUR_INTERRUPTION_MS = 2_000;

type Ending = Exclude<ServerContent['turnCompleteReason'], null | undefined>;
const GOOD_ENDINGS: ReadonlySet<Ending> = new Set([
  'TURN_COMPLETE_REASON_UNSPECIFIED',
  'NEED_MORE_INPUT',
]);

export class Translator {
  readonly #connection: WireConnection;
  readonly #resumption: Resumption;
  /** Writes notes for messages that the protocol cannot represent. */
  readonly #notes: NoteWriter;
  readonly #traits: ModelTraits;
  readonly #calls: ToolCalls;
  readonly #requests: Requests;
  readonly #turns: ModelTurns;
  readonly #speech: UserSpeech;
  readonly #outgoing: Outgoing;
  #isWorking = false;
  #weInterruptUntil = Number.NEGATIVE_INFINITY;

  constructor(
    connection: WireConnection,
    resumption: Resumption,
    notes: NoteWriter,
    traits: ModelTraits,
    calls: ToolCalls,
  ) {
    this.#connection = connection;
    this.#resumption = resumption;
    this.#notes = notes;
    this.#traits = traits;
    this.#calls = calls;
    this.#requests = new Requests(connection);
    this.#turns = new ModelTurns(connection, () => {
      this.#speech.answered();
      return this.#requests.begins();
    });
    this.#speech = new UserSpeech(connection, {
      isAnswered: () => this.#turns.isAnswering,
      began: () => {
        resumption.withdraw();
        this.#requests.userSpoke();
        this.#turns.takeKeyBack();
      },
      settled: (words, isAnswered) => {
        if (words !== '' && !isAnswered) this.#requests.owes();
        this.#outgoing.flush();
      },
    });
    this.#outgoing = new Outgoing(
      connection.environment,
      resumption,
      notes,
      {
        isBusy: () => this.#isBusy,
        busyForMs: () => this.#busyForMs,
        giveUp: () => this.#giveUp(),
      },
      traits,
      calls,
      this.#requests,
    );
  }

  /** Returns the conversation so far, for a new connection. */
  history(commands: readonly TransportCommand[]): readonly wire.Turn[] {
    const notes = this.#notes;
    return commands.flatMap((command) => {
      if (command.type === 'message.add') return [messageTurn(notes, command)];
      if (command.type === 'tool.recall') {
        this.#calls.recalled(command.callId, command.name);
        return [callTurn(notes, command)];
      }
      if (command.type !== 'tool.answer') return [];
      return [answerTurn(notes, this.#calls.nameOf(command.callId), command)];
    });
  }

  /** Records user audio that the server received. */
  soundSent(durationMs: number): void {
    this.#speech.sentMs += durationMs;
  }

  /** Starts sending, because the model is configured and has its history. */
  open(): void {
    this.#outgoing.open();
  }

  stop(): void {
    this.#speech.stop();
    this.#turns.stop();
    this.#outgoing.stop();
  }

  toWire(command: TransportCommand): void {
    switch (command.type) {
      case 'message.add':
        return this.#outgoing.add(messageTurn(this.#notes, command));
      case 'tool.recall':
        this.#calls.recalled(command.callId, command.name);
        return this.#outgoing.add(callTurn(this.#notes, command));
      case 'tool.answer':
        return this.#outgoing.answer(command);
      case 'response.request':
        return this.#outgoing.request(command);
      case 'response.cancel':
        return this.#cancel();
      case 'utterance.end':
        // Ending the audio stream stops the server's speech detector, which would otherwise continue to listen.
        this.#resumption.send(wire.audioStreamEnd(), null);
        return this.#speech.settle();
      case 'response.withdraw':
        return this.#outgoing.withdraw(command.responseKey);
      case 'image.add':
        return this.#showPicture(command);
      case 'session.configure':
        return this.#configure(command);
      // The protocol cannot delete items and does not support delegation.
      case 'item.delete':
      case 'question.expect':
      case 'playout.truncate':
      case 'delegation.accept':
      case 'delegation.answer':
    }
  }

  /** Forwards the message's conversation content. */
  fromWire(message: ServerMessage, raw: unknown): void {
    const { serverContent, toolCall, toolCallCancellation, usageMetadata } = message;
    if (serverContent || toolCall) this.#outgoing.sign();
    this.#onDetector(message);
    if (serverContent) this.#onContent(serverContent);
    for (const call of toolCall?.functionCalls ?? []) this.#onCall(call);
    if (toolCall && this.#traits.duringCall !== 'goes_on') this.#turns.complete(null);
    for (const callId of toolCallCancellation?.ids ?? []) {
      if (this.#calls.cancelled(callId)) this.#connection.emit({ type: 'tool.cancelled', callId });
    }
    if (usageMetadata) this.#onUsage(usageMetadata, raw);
    this.#outgoing.flush();
  }

  get #isBusy(): boolean {
    return this.#busyForMs !== 0;
  }

  /** How long the model will stay busy, in milliseconds; null if this is unknown. */
  get #busyForMs(): number | null {
    const isTalked = this.#turns.isOpen || this.#speech.isOpen || this.#isWorking;
    return isTalked || this.#requests.isPending ? null : this.#requests.owedMs;
  }

  #giveUp(): void {
    this.#turns.giveUp();
    this.#speech.settle();
    this.#requests.failed('the model did not answer', 'failed');
    this.#requests.owesNothing();
    this.#setWorking(false);
  }

  #cancel(): void {
    this.#outgoing.withdraw(null);
    const wasPending = this.#requests.cancel();
    const wasMaking = this.#turns.cancel();
    // Client content interrupts the model. If the user is speaking, the model has already been interrupted.
    const canStop = this.#traits.clientContent === 'anytime' && !this.#speech.isOpen;
    if (!canStop || !(wasPending || wasMaking)) return;
    this.#weInterruptUntil = this.#connection.environment.clock.now() + OUR_INTERRUPTION_MS;
    this.#resumption.send(wire.clientContent([], false), null);
  }

  #showPicture({ mediaType, data }: Extract<TransportCommand, { type: 'image.add' }>): void {
    const base64 = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
    if (this.#traits.clientContent === 'initially') {
      const message = wire.realtimePicture(mediaType, base64);
      this.#resumption.send(message, message);
      return;
    }
    // As realtime input, a picture would reach the model only while the user is speaking.
    const parts = [{ inlineData: { mimeType: mediaType, data: base64 } }];
    this.#outgoing.add({ role: 'user', parts });
  }

  #configure({ configuration }: Extract<TransportCommand, { type: 'session.configure' }>): void {
    if (!this.#traits.contextUpdate) {
      const message = `The model (${this.#traits.family}) cannot be configured anew`;
      this.#connection.emit({ type: 'session.refused', code: 'UNSUPPORTED', message });
      return;
    }
    const behavior = this.#traits.duringCall === 'goes_on' ? 'NON_BLOCKING' : null;
    const message = wire.contextUpdate(configuration, behavior);
    this.#resumption.send(message, message);
    // The server does not confirm updates. It processes updates in order with all other messages, or ends the session.
    this.#connection.emit({ type: 'session.configured' });
  }

  #onDetector({ voiceActivity, voiceActivityDetectionSignal }: ServerMessage): void {
    const offsetMs = wire.durationMs(voiceActivity?.audioOffset);
    const type = voiceActivity?.voiceActivityType ?? voiceActivityDetectionSignal?.vadSignalType;
    if (type === 'ACTIVITY_START' || type === 'VAD_SIGNAL_TYPE_SOS') {
      this.#speech.heardStart(offsetMs);
    } else if (type === 'ACTIVITY_END' || type === 'VAD_SIGNAL_TYPE_EOS') {
      this.#speech.heardEnd();
    }
  }

  /** GEMINI-LIVE-TRANSLATOR-1 */
  #onContent(content: ServerContent): void {
    const { inputTranscription: words, interimInputTranscription: interim } = content;
    if (content.interrupted) this.#onInterrupted();
    if (interim?.text)
      this.#speech.heardInterim(interim.text, wire.durationMs(interim.startOffset));
    if (words) {
      const { text, finished, startOffset } = words;
      this.#speech.heardWords(text ?? '', finished === true, wire.durationMs(startOffset));
    }
    if (content.modelTurn) this.#resumption.withdraw();
    for (const part of content.modelTurn?.parts ?? []) {
      if (part.inlineData?.data) this.#turns.audio(part.inlineData.data);
      else if (part.text && part.thought !== true) this.#turns.words(part.text);
    }
    if (content.outputTranscription?.text) this.#turns.words(content.outputTranscription.text);
    if (content.generationComplete) this.#turns.made();
    if (content.waitingForInput) this.#requests.owesNothing();
    if (content.turnComplete) this.#onTurnComplete(content.turnCompleteReason ?? null);
    if (content.interactionStatus) {
      // While a call is open, the model is waiting for the client and accepts messages.
      const isWorking = content.interactionStatus === 'IN_PROGRESS' && !this.#calls.areOpen;
      this.#setWorking(isWorking);
    }
  }

  #onInterrupted(): void {
    const isOurs = this.#connection.environment.clock.now() < this.#weInterruptUntil;
    this.#weInterruptUntil = Number.NEGATIVE_INFINITY;
    this.#turns.interrupted(!isOurs);
    if (!isOurs) this.#speech.brokeIn();
  }

  #onTurnComplete(reason: Ending | null): void {
    const failure = reason === null || GOOD_ENDINGS.has(reason) ? null : reason;
    if (this.#turns.complete(failure)) {
      this.#requests.turnEnded();
      return;
    }
    // The turn has ended without content.
    if (failure === null) this.#requests.failed('the model said nothing', 'incomplete');
    else if (this.#requests.isPending) this.#requests.failed(failure, 'failed');
    else this.#turns.failed(failure);
    this.#requests.owesNothing();
  }

  #onCall(call: { id?: string | null; name: string; args?: Record<string, unknown> | null }): void {
    const callId = call.id || this.#connection.environment.ids.next('call');
    if (!this.#calls.called(callId, call.name)) return;
    this.#resumption.withdraw();
    const responseId = this.#turns.calls();
    const args = JSON.stringify(call.args ?? {});
    this.#connection.emit({
      type: 'tool.called',
      callId,
      name: call.name,
      arguments: args,
      responseId,
    });
  }

  #onUsage(usage: NonNullable<ServerMessage['usageMetadata']>, raw: unknown): void {
    const { promptTokenCount, toolUsePromptTokenCount } = usage;
    const { responseTokenCount, thoughtsTokenCount } = usage;
    this.#connection.emit({
      type: 'usage.reported',
      inputTokens: sum(promptTokenCount, toolUsePromptTokenCount),
      outputTokens: sum(responseTokenCount, thoughtsTokenCount),
      ...withoutUndefined({
        cachedInputTokens: usage.cachedContentTokenCount ?? undefined,
        audioInputTokens: audioOf(usage.promptTokensDetails),
        audioOutputTokens: audioOf(usage.responseTokensDetails),
      }),
      raw,
    });
  }

  #setWorking(isWorking: boolean): void {
    if (isWorking === this.#isWorking) return;
    this.#isWorking = isWorking;
    this.#connection.emit({ type: 'model.changed', status: isWorking ? 'working' : 'idle' });
  }
}

type Modalities = NonNullable<ServerMessage['usageMetadata']>['promptTokensDetails'];

/** Returns the number of audio tokens; undefined if the server reports no breakdown. */
function audioOf(parts: Modalities): number | undefined {
  return parts?.reduce(
    (total, { modality, tokenCount }) => total + (modality === 'AUDIO' ? tokenCount : 0),
    0,
  );
}

function sum(...counts: readonly (number | null | undefined)[]): number | null {
  const known = counts.filter((count) => typeof count === 'number');
  return known.length === 0 ? null : known.reduce((total, count) => total + count, 0);
}
