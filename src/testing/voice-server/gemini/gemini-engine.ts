// The fake of the Gemini Live server. The model responds to speech and results without a request; turns have no names;
// an invalid message ends the connection with 1007.
//
// Owns:     the client's messages and their consequences, calls and their scheduling, resumption.
// Does not: define the schemas (`client-messages.ts`), the memory (`gemini-memory.ts`), or the audio and the end of a
//           turn (`model-turns.ts`: GEMINI-MODEL-TURNS-1, GEMINI-MODEL-TURNS-2).
//
// GEMINI-ENGINE-3. While a blocking call is open, the model is silent; an interruption cancels the call.
// GEMINI-ENGINE-4. The scheduling of a non-blocking call decides when the model speaks about its result; content that
//     arrives during generation is read but gets no response.

import { isRecord } from '../../../values/json.ts';
import { messageOf } from '../../../values/errors.ts';
import { argumentsObject, type CallStep } from '../engine/call-step.ts';
import type {
  FakeItem,
  FakeTool,
  TranscriptTiming,
  VoiceCause,
  VoiceStep,
} from '../engine/control.ts';
import type { EnginePorts, VoiceEngine } from '../engine/engine.ts';
import type { ReplyRecord } from '../engine/fake-replies.ts';
import type { ResumeStore } from '../engine/resume-store.ts';
import { Timers } from '../engine/timers.ts';
import type { TurnQueue } from '../engine/turn-queue.ts';
import { bringLastWords } from '../engine/user-words.ts';
import {
  InvalidMessage,
  parseGeminiFrame,
  type ClientContent,
  type FunctionResponse,
  type GeminiClientMessage,
  type RealtimeInput,
  type Setup,
  type Blob,
} from './client-messages.ts';
import { GeminiSession, schedulingIn, textOf, type GeminiMemory } from './gemini-memory.ts';
import { ModelTurns } from './model-turns.ts';
import type { ServerMessage } from './official.ts';
import { decodePcm16Base64 } from '../../../voice/audio/pcm16.ts';

export type { GeminiMemory } from './gemini-memory.ts';

const INVALID = 'Request contains an invalid argument.';
const CLOSE_INVALID = 1007;
const CLOSE_FAILED = 1011;

export class GeminiEngine implements VoiceEngine {
  readonly #ports: EnginePorts;
  readonly #handles: ResumeStore<GeminiMemory>;
  readonly #modelTurns: ModelTurns;
  readonly #turns: TurnQueue;
  readonly #timers: Timers;
  #session: GeminiSession | null = null;
  #heardMs = 0;
  #awaitsHistory = false;
  #messagesRead = 0;
  /** The user's words while the client itself reports the speech. */
  #spoken = '';

  constructor(ports: EnginePorts, handles: ResumeStore<GeminiMemory>) {
    this.#ports = ports;
    this.#handles = handles;
    this.#timers = new Timers(ports.environment.scheduler);
    this.#modelTurns = new ModelTurns(ports, {
      session: () => this.#session,
      send: (message) => this.#send(message),
      call: (step) => this.#call(step),
      ended: () => this.#tellHandle(),
    });
    this.#turns = this.#modelTurns.queue;
  }

  open(): void {}

  receive(text: string): void {
    try {
      const message = parseGeminiFrame(text);
      this.#messagesRead += 1;
      this.#note(message);
      this.#handle(message);
    } catch (error) {
      const isTheirs = error instanceof InvalidMessage;
      this.#ports.close(isTheirs ? CLOSE_INVALID : CLOSE_FAILED, messageOf(error));
    }
  }

  end(): void {
    this.#turns.abandon();
    this.#timers.stop();
  }

  userBegins(): void {
    if (this.#session === null) return;
    this.#tellActivity('ACTIVITY_START');
    if (!this.#detectsActivity) return;
    this.#spoken = '';
    this.#activityBegins(this.#session);
  }

  userSays(words: string): void {
    if (this.#session?.setup.inputAudioTranscription === undefined) return;
    this.#send({ serverContent: { inputTranscription: { text: words } } });
  }

  userEnds(text: string, rest: string, transcript: TranscriptTiming): void {
    if (this.#session === null) return;
    this.#spoken = text;
    bringLastWords(rest, transcript, this.#timers, (words) => this.userSays(words));
    this.#tellActivity('ACTIVITY_END');
    if (this.#detectsActivity) this.#activityEnds(this.#session);
  }

  answers(steps: readonly VoiceStep[]): ReplyRecord {
    return this.#turns.addOwn(steps);
  }

  get heardMs(): number {
    return this.#heardMs;
  }

  get instructions(): string {
    return this.#session?.instructions ?? '';
  }

  get tools(): readonly FakeTool[] {
    return this.#session?.tools ?? [];
  }

  get items(): readonly FakeItem[] {
    return this.#session?.items ?? [];
  }

  get openCalls() {
    const calls = this.#session?.openCalls.values() ?? [];
    return [...calls].map(({ callId, name }) => ({ callId, name }));
  }

  expire(): void {
    this.#ports.close(CLOSE_FAILED, 'The session has reached its maximum duration.');
  }

  goAway(timeLeftMs: number): void {
    this.#send({ goAway: { timeLeft: `${timeLeftMs / 1000}s` } });
    this.#timers.later(() => this.expire(), timeLeftMs);
  }

  cancelCalls(callIds?: readonly string[]): void {
    const session = this.#session;
    if (session === null) return;
    const ids = callIds ?? [...session.openCalls.keys()];
    this.#send({ toolCallCancellation: { ids: [...ids] } });
    for (const id of ids) session.openCalls.delete(id);
    this.#unblock(session);
  }

  unknownEvent(type: string): object {
    return { [type]: { weather: 'fine' } };
  }

  #note(message: GeminiClientMessage): void {
    const { type, value } = message;
    if (type === 'realtimeInput' && (value.audio ?? value.mediaChunks) !== undefined) return;
    this.#ports.received({ type, body: value });
  }

  #handle(message: GeminiClientMessage): void {
    if (message.type === 'setup') return this.#start(message.value);
    const session = this.#session;
    if (session === null) {
      throw new InvalidMessage('setup must be the first message and only the first');
    }
    switch (message.type) {
      case 'clientContent':
        return this.#addContent(session, message.value);
      case 'realtimeInput':
        return this.#hear(session, message.value);
      case 'toolResponse':
        for (const response of message.value.functionResponses) this.#answer(session, response);
        return undefined;
      case 'contextUpdate': {
        const { systemInstruction, tools } = message.value;
        if (systemInstruction !== undefined) session.instructions = textOf(systemInstruction);
        if (tools !== undefined) session.declare(tools.tools ?? []);
        return undefined;
      }
    }
  }

  #start(given: Setup): void {
    if (this.#session !== null) throw new InvalidMessage(INVALID);
    // An ephemeral token fixes the choices of the program that issued it.
    const setup = this.#ports.preset === undefined ? given : overlay(given, this.#ports.preset);
    const handle = setup.sessionResumption?.handle;
    const memory = handle === undefined ? null : this.#handles.find(handle);
    if (handle !== undefined && memory === null) throw new InvalidMessage(INVALID);
    const { ids } = this.#ports.environment;
    const session = new GeminiSession(setup, memory, () => ids.next('item'));
    this.#session = session;
    this.#awaitsHistory = setup.historyConfig?.initialHistoryInClientContent === true;
    this.#send({ setupComplete: { sessionId: ids.next('session') } });
    this.#tellHandle();
    this.#ports.configured();
  }

  #addContent(session: GeminiSession, { turns = [], turnComplete }: ClientContent): void {
    if (this.#awaitsHistory) {
      session.add(turns);
      if (turnComplete === true) this.#awaitsHistory = false;
      return;
    }
    if (!session.traits.takesLateContent) throw new InvalidMessage(INVALID);
    const isGenerating = !this.#turns.isIdle;
    const cause = session.add(turns);
    if (turnComplete === true && !isGenerating) this.#turns.add(cause);
  }

  #hear(session: GeminiSession, input: RealtimeInput): void {
    const { audio, mediaChunks = [], video, text, activityStart, activityEnd } = input;
    for (const blob of [...(audio === undefined ? [] : [audio]), ...mediaChunks]) {
      this.#heardMs += readSound(blob);
    }
    if (video !== undefined) {
      if (!video.mimeType.startsWith('image/')) throw new InvalidMessage(INVALID);
      session.look(video.mimeType);
    }
    if (text !== undefined) {
      session.say('user', text, 'realtimeInput');
      this.#turns.add({ type: 'message', role: 'user', text });
    }
    if ((activityStart ?? activityEnd) !== undefined && this.#detectsActivity) {
      throw new InvalidMessage(
        'Explicit activity control is not supported when automatic activity detection is enabled.',
      );
    }
    if (activityStart !== undefined) this.#activityBegins(session);
    if (activityEnd !== undefined) this.#activityEnds(session);
  }

  #activityBegins(session: GeminiSession): void {
    this.#turns.hold('user');
    if (session.setup.realtimeInputConfig?.activityHandling === 'NO_INTERRUPTION') return;
    if (session.isBlocked) this.cancelCalls(session.blockingCalls.map(({ callId }) => callId));
    this.#turns.cancel();
  }

  #activityEnds(session: GeminiSession): void {
    const text = this.#spoken;
    this.#spoken = '';
    session.say('user', text, 'speech');
    this.#turns.release('user');
    this.#turns.add({ type: 'utterance', text });
  }

  #answer(session: GeminiSession, given: FunctionResponse): void {
    const call = session.openCalls.get(given.id ?? '');
    // The call was cancelled, or already has a result.
    if (call === undefined) return;
    const { callId, name, behavior } = call;
    session.answer(callId, given);
    if (given.willContinue !== true) session.openCalls.delete(callId);
    const cause: VoiceCause = { type: 'result', callId, name, output: given.response };
    if (behavior === 'BLOCKING') {
      if (session.isBlocked) return;
      this.#turns.addFirst(cause);
      this.#unblock(session);
      return;
    }
    switch (given.scheduling ?? schedulingIn(given.response) ?? 'WHEN_IDLE') {
      case 'SILENT':
        if (session.traits.reportsStatus && session.openCalls.size === 0 && this.#turns.isIdle) {
          this.#send({ serverContent: { interactionStatus: 'IDLE' } });
        }
        return;
      case 'INTERRUPT':
        this.#turns.addFirst(cause);
        this.#turns.cancel();
        return;
      default:
        this.#turns.add(cause);
    }
  }

  #call(step: CallStep): void {
    const session = this.#session;
    if (session === null) return;
    const { call: name, callId = this.#ports.environment.ids.next('function-call') } = step;
    const args = argumentsObject(step);
    if (args === null) {
      this.#modelTurns.callIsMalformed();
      return;
    }
    const behavior = session.behaviorOf(name);
    session.call({ callId, name, behavior }, args);
    if (behavior === 'BLOCKING') this.#turns.hold('call');
    const message = { toolCall: { functionCalls: [{ id: callId, name, args }] } };
    this.#send(message);
    if (this.#ports.faults.duplicateCalls) this.#send(message);
  }

  #unblock(session: GeminiSession): void {
    if (!session.isBlocked) this.#turns.release('call');
  }

  get #detectsActivity(): boolean {
    const config = this.#session?.setup.realtimeInputConfig;
    return config?.automaticActivityDetection?.disabled !== true;
  }

  #tellActivity(voiceActivityType: 'ACTIVITY_START' | 'ACTIVITY_END'): void {
    if (!this.#ports.voiceActivity) return;
    const audioOffset = `${(this.#heardMs / 1000).toFixed(3)}s`;
    this.#send({ voiceActivity: { voiceActivityType, audioOffset } });
  }

  #tellHandle(): void {
    const resumption = this.#session?.setup.sessionResumption;
    if (this.#session === null || resumption === undefined) return;
    if (this.#handles.isForgetful) {
      this.#send({ sessionResumptionUpdate: { resumable: false } });
      return;
    }
    const newHandle = this.#ports.environment.ids.next('handle');
    this.#handles.save(newHandle, this.#session.memory);
    this.#send({
      sessionResumptionUpdate: {
        newHandle,
        resumable: true,
        ...(resumption.transparent === true && {
          lastConsumedClientMessageIndex: String(this.#messagesRead),
        }),
      },
    });
  }

  #send(message: ServerMessage): void {
    this.#ports.send(message);
  }
}

/** Merges the setups: fields of `fixed` override the client's. @throws {InvalidMessage} */
export function overlay(asked: Setup, fixed: unknown): Setup {
  const setup = merge(asked, fixed);
  const message = parseGeminiFrame(JSON.stringify({ setup }));
  if (message.type !== 'setup') throw new InvalidMessage('Request contains an invalid argument.');
  return message.value;
}

function merge(under: unknown, over: unknown): unknown {
  if (!isRecord(under) || !isRecord(over)) return over ?? under;
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) merged[key] = merge(under[key], value);
  return merged;
}

const DEFAULT_RATE_HZ = 16_000;

/** Returns the duration of the audio, in milliseconds. @throws {InvalidMessage} */
export function readSound({ mimeType, data }: Blob): number {
  const type = /^audio\/pcm(?:;\s*rate=(\d+))?$/.exec(mimeType);
  if (type === null) throw new InvalidMessage('Request contains an invalid argument.');
  const rateHz = type[1] === undefined ? DEFAULT_RATE_HZ : Number(type[1]);
  try {
    return (decodePcm16Base64(data).length * 1000) / rateHz;
  } catch {
    throw new InvalidMessage('Request contains an invalid argument.');
  }
}
