// The fake of the Gemini Live server. The model responds to speech and results without a request. Its turns have no
// ids. An invalid message ends the connection with 1007.
//
// Owns:     the handling of the client's messages, calls and their scheduling, the model's speech, and resumption.
// Does not: define the schemas (`client-messages.ts`) or the memory (`gemini-memory.ts`).
//
// GEMINI-MODEL-TURNS-1. A normal turn ends with generationComplete, followed by turnComplete at the time when its audio
//     would have been played. An interrupted turn ends with interrupted, followed by turnComplete.
// GEMINI-MODEL-TURNS-2. A turn with a blocking call ends silently, and the result continues it.
// GEMINI-ENGINE-3. While a blocking call is open, the model is silent. An interruption cancels the call.
// GEMINI-ENGINE-4. The scheduling of a non-blocking call determines when the model speaks about its result. Content
//     that arrives during generation is read but gets no response.

import { isRecord } from '../../../values/json.ts';
import { messageOf } from '../../../values/errors.ts';
import { argumentsObject, type CallStep } from '../engine/call-step.ts';
import type { VoiceCause } from '../engine/control.ts';
import type { EnginePorts, VoiceEngine } from '../engine/engine.ts';
import type { ResumeStore } from '../engine/resume-store.ts';
import { timersOf } from '../engine/timers.ts';
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
import type { ServerMessage, ServerContent } from './official.ts';
import { decodePcm16Base64, encodePcm16Base64 } from '../../../voice/audio/pcm16.ts';
import type { ReplyRecord } from '../engine/reply-record.ts';
import { tone, type SpeechPiece } from '../engine/sound.ts';
import { turnQueue } from '../engine/turn-queue.ts';

export type { GeminiMemory } from './gemini-memory.ts';

const INVALID = 'Request contains an invalid argument.';
const CLOSE_INVALID = 1007;
const CLOSE_FAILED = 1011;

export function geminiEngine(ports: EnginePorts, handles: ResumeStore<GeminiMemory>): VoiceEngine {
  let live: GeminiSession | null = null;
  let heardMs = 0;
  let awaitsHistory = false;
  let messagesRead = 0;
  /** The user's words, in a session whose client reports when the user speaks. */
  let spoken = '';
  const send = (message: ServerMessage): void => ports.send(message);
  const timers = timersOf(ports.environment.scheduler);
  const { queue, callIsMalformed } = modelTurns(ports, {
    session: () => live,
    send,
    call: callTool,
    ended: tellHandle,
  });

  function userSays(words: string): void {
    if (live?.setup.inputAudioTranscription === undefined) return;
    send({ serverContent: { inputTranscription: { text: words } } });
  }

  function expire(): void {
    ports.close(CLOSE_FAILED, 'The session has reached its maximum duration.');
  }

  function cancelCalls(callIds?: readonly string[]): void {
    const session = live;
    if (session === null) return;
    const ids = callIds ?? [...session.openCalls.keys()];
    send({ toolCallCancellation: { ids: [...ids] } });
    for (const id of ids) session.openCalls.delete(id);
    unblock(session);
  }

  function note(message: GeminiClientMessage): void {
    const { type, value } = message;
    if (type === 'realtimeInput' && (value.audio ?? value.mediaChunks) !== undefined) return;
    ports.received({ type, body: value });
  }

  function take(message: GeminiClientMessage): void {
    if (message.type === 'setup') return start(message.value);
    const session = live;
    if (session === null) {
      throw new InvalidMessage('setup must be the first message and only the first');
    }
    switch (message.type) {
      case 'clientContent':
        return addContent(session, message.value);
      case 'realtimeInput':
        return hear(session, message.value);
      case 'toolResponse':
        for (const response of message.value.functionResponses) answer(session, response);
        return undefined;
      case 'contextUpdate': {
        const { systemInstruction, tools } = message.value;
        if (systemInstruction !== undefined) session.instructions = textOf(systemInstruction);
        if (tools !== undefined) session.declare(tools.tools ?? []);
        return undefined;
      }
    }
  }

  function start(given: Setup): void {
    if (live !== null) throw new InvalidMessage(INVALID);
    // The configuration in an ephemeral token, which its issuer has chosen, takes precedence.
    const setup = ports.preset === undefined ? given : overlay(given, ports.preset);
    const handle = setup.sessionResumption?.handle;
    const memory = handle === undefined ? null : handles.find(handle);
    if (handle !== undefined && memory === null) throw new InvalidMessage(INVALID);
    const { ids } = ports.environment;
    const session = new GeminiSession(setup, memory, () => ids.next('item'));
    live = session;
    awaitsHistory = setup.historyConfig?.initialHistoryInClientContent === true;
    send({ setupComplete: { sessionId: ids.next('session') } });
    tellHandle();
    ports.configured();
  }

  function addContent(session: GeminiSession, { turns = [], turnComplete }: ClientContent): void {
    if (awaitsHistory) {
      session.add(turns);
      if (turnComplete === true) awaitsHistory = false;
      return;
    }
    if (!session.traits.takesLateContent) throw new InvalidMessage(INVALID);
    const isGenerating = !queue.isIdle;
    const cause = session.add(turns);
    if (turnComplete === true && !isGenerating) queue.add(cause);
  }

  function hear(session: GeminiSession, input: RealtimeInput): void {
    const { audio, mediaChunks = [], video, text, activityStart, activityEnd } = input;
    for (const blob of [...(audio === undefined ? [] : [audio]), ...mediaChunks]) {
      heardMs += readSound(blob);
    }
    if (video !== undefined) {
      if (!video.mimeType.startsWith('image/')) throw new InvalidMessage(INVALID);
      session.look(video.mimeType);
    }
    if (text !== undefined) {
      session.say('user', text, 'realtimeInput');
      queue.add({ type: 'message', role: 'user', text });
    }
    if ((activityStart ?? activityEnd) !== undefined && detectsActivity()) {
      throw new InvalidMessage(
        'Explicit activity control is not supported when automatic activity detection is enabled.',
      );
    }
    if (activityStart !== undefined) activityBegins(session);
    if (activityEnd !== undefined) activityEnds(session);
  }

  function activityBegins(session: GeminiSession): void {
    queue.hold('user');
    if (session.setup.realtimeInputConfig?.activityHandling === 'NO_INTERRUPTION') return;
    if (session.isBlocked) cancelCalls(session.blockingCalls.map(({ callId }) => callId));
    queue.cancel();
  }

  function activityEnds(session: GeminiSession): void {
    const text = spoken;
    spoken = '';
    session.say('user', text, 'speech');
    queue.release('user');
    queue.add({ type: 'utterance', text });
  }

  function answer(session: GeminiSession, given: FunctionResponse): void {
    const call = session.openCalls.get(given.id ?? '');
    // The call has been cancelled or already has a result.
    if (call === undefined) return;
    const { callId, name, behavior } = call;
    session.answer(callId, given);
    if (given.willContinue !== true) session.openCalls.delete(callId);
    const cause: VoiceCause = { type: 'result', callId, name, output: given.response };
    if (behavior === 'BLOCKING') {
      if (session.isBlocked) return;
      queue.addFirst(cause);
      unblock(session);
      return;
    }
    switch (given.scheduling ?? schedulingIn(given.response) ?? 'WHEN_IDLE') {
      case 'SILENT':
        if (session.traits.reportsStatus && session.openCalls.size === 0 && queue.isIdle) {
          send({ serverContent: { interactionStatus: 'IDLE' } });
        }
        return;
      case 'INTERRUPT':
        queue.addFirst(cause);
        queue.cancel();
        return;
      default:
        queue.add(cause);
    }
  }

  function callTool(step: CallStep): void {
    const session = live;
    if (session === null) return;
    const { call: name, callId = ports.environment.ids.next('function-call') } = step;
    const args = argumentsObject(step);
    if (args === null) {
      callIsMalformed();
      return;
    }
    const behavior = session.behaviorOf(name);
    session.call({ callId, name, behavior }, args);
    if (behavior === 'BLOCKING') queue.hold('call');
    const message = { toolCall: { functionCalls: [{ id: callId, name, args }] } };
    send(message);
    if (ports.faults.duplicateCalls) send(message);
  }

  function unblock(session: GeminiSession): void {
    if (!session.isBlocked) queue.release('call');
  }

  function detectsActivity(): boolean {
    const config = live?.setup.realtimeInputConfig;
    return config?.automaticActivityDetection?.disabled !== true;
  }

  function tellActivity(voiceActivityType: 'ACTIVITY_START' | 'ACTIVITY_END'): void {
    if (!ports.voiceActivity) return;
    const audioOffset = `${(heardMs / 1000).toFixed(3)}s`;
    send({ voiceActivity: { voiceActivityType, audioOffset } });
  }

  function tellHandle(): void {
    const resumption = live?.setup.sessionResumption;
    if (live === null || resumption === undefined) return;
    if (handles.isForgetful) {
      send({ sessionResumptionUpdate: { resumable: false } });
      return;
    }
    const newHandle = ports.environment.ids.next('handle');
    handles.save(newHandle, live.memory);
    send({
      sessionResumptionUpdate: {
        newHandle,
        resumable: true,
        ...(resumption.transparent === true && {
          lastConsumedClientMessageIndex: String(messagesRead),
        }),
      },
    });
  }

  return {
    open() {},
    receive(text) {
      try {
        const message = parseGeminiFrame(text);
        messagesRead += 1;
        note(message);
        take(message);
      } catch (error) {
        const isTheirs = error instanceof InvalidMessage;
        ports.close(isTheirs ? CLOSE_INVALID : CLOSE_FAILED, messageOf(error));
      }
    },
    end() {
      queue.abandon();
      timers.stop();
    },
    userBegins() {
      if (live === null) return;
      tellActivity('ACTIVITY_START');
      if (!detectsActivity()) return;
      spoken = '';
      activityBegins(live);
    },
    userSays,
    userEnds(text, rest, transcript) {
      if (live === null) return;
      spoken = text;
      bringLastWords(rest, transcript, timers, (words) => userSays(words));
      tellActivity('ACTIVITY_END');
      if (detectsActivity()) activityEnds(live);
    },
    answers: (steps) => queue.addOwn(steps),
    get heardMs() {
      return heardMs;
    },
    get instructions() {
      return live?.instructions ?? '';
    },
    get tools() {
      return live?.tools ?? [];
    },
    get items() {
      return live?.items ?? [];
    },
    get openCalls() {
      const calls = live?.openCalls.values() ?? [];
      return [...calls].map(({ callId, name }) => ({ callId, name }));
    },
    expire,
    goAway(timeLeftMs) {
      send({ goAway: { timeLeft: `${timeLeftMs / 1000}s` } });
      timers.later(() => expire(), timeLeftMs);
    },
    cancelCalls,
    unknownEvent: (type) => ({ [type]: { weather: 'fine' } }),
  };
}

/** Merges the setups. Fields of `fixed` override those of the client. @throws {InvalidMessage} */
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

/** Returns the duration of audio, in milliseconds. @throws {InvalidMessage} */
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

const OUTPUT_RATE_HZ = 24_000;
const DEFAULT_SPEED = 4;
const PROMPT_TOKENS = 50;
const MS_PER_TOKEN = 40;

interface ModelTurnsPorts {
  /** Null before the setup. */
  session(): GeminiSession | null;
  send(message: ServerMessage): void;
  call(step: CallStep): void;
  /** Called after the events that end a turn have been sent. */
  ended(): void;
}

/** The model's speech in each turn, and the events with which a turn ends. */
function modelTurns(engine: EnginePorts, ports: ModelTurnsPorts) {
  /** When the playback of the current turn started. */
  let playingSince: number | null = null;
  /** Why the current turn fails. */
  let failure: ServerContent['turnCompleteReason'];
  const content = (serverContent: ServerContent): void => ports.send({ serverContent });
  const queue = turnQueue(engine, {
    speed: engine.speed ?? DEFAULT_SPEED,
    piece: (piece, reply) => speak(piece, reply),
    call: (step) => ports.call(step),
    // This protocol calls tools by name and has no delegations.
    delegate: () => {},
    // The event that ends the turn reports the failure.
    fail: () => {
      failure = 'RESPONSE_REJECTED';
    },
    generated: (reply) => generated(reply),
    ended: (reply, next) => end(reply, next),
  });

  function speak({ words, startMs, durationMs }: SpeechPiece, reply: ReplyRecord): void {
    const setup = ports.session()?.setup;
    playingSince ??= engine.environment.clock.now();
    reply.text += words;
    if (setup?.generationConfig?.responseModalities?.includes('TEXT')) {
      if (words !== '') content({ modelTurn: { role: 'model', parts: [{ text: words }] } });
      return;
    }
    reply.audioMs += durationMs;
    const data = encodePcm16Base64(tone(startMs, durationMs, OUTPUT_RATE_HZ));
    const inlineData = { mimeType: `audio/pcm;rate=${OUTPUT_RATE_HZ}`, data };
    content({ modelTurn: { role: 'model', parts: [{ inlineData }] } });
    if (words !== '' && setup?.outputAudioTranscription !== undefined) {
      content({ outputTranscription: { text: words } });
    }
  }

  /** @returns the remaining duration of the turn's playback */
  function generated(reply: ReplyRecord): number {
    if (ports.session()?.isBlocked) return 0;
    content({ generationComplete: true });
    const since = playingSince;
    if (since === null) return 0;
    return Math.max(0, since + reply.audioMs - engine.environment.clock.now());
  }

  function end(reply: ReplyRecord, next: SpeechPiece | null): void {
    const session = ports.session();
    if (session === null) return;
    if (reply.text !== '') session.say('assistant', reply.text, 'speech');
    playingSince = null;
    if (reply.status === 'completed' && session.isBlocked) return;
    if (reply.status === 'cancelled') content({ interrupted: true });
    const isWorking = session.openCalls.size > 0 || !queue.isIdle;
    const responseTokens = Math.ceil(reply.audioMs / MS_PER_TOKEN);
    ports.send({
      serverContent: {
        turnComplete: true,
        ...(session.traits.reportsStatus && {
          interactionStatus: isWorking ? ('IN_PROGRESS' as const) : ('IDLE' as const),
        }),
        ...(failure !== undefined && { turnCompleteReason: failure }),
      },
      usageMetadata: {
        promptTokenCount: PROMPT_TOKENS,
        responseTokenCount: responseTokens,
        totalTokenCount: PROMPT_TOKENS + responseTokens,
      },
    });
    failure = undefined;
    if (next !== null && engine.faults.deltasAfterCancel) speak(next, reply);
    playingSince = null;
    ports.ended();
  }

  return {
    queue,
    /** Called when a call cannot be parsed. The turn then ends with this reason. */
    callIsMalformed(): void {
      failure = 'MALFORMED_FUNCTION_CALL';
    },
  };
}
