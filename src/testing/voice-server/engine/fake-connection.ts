// One connection with any protocol. It is the `FakeVoiceModel` of a test, and connects the protocol's engine to the
// socket of a host. It has its own user (when the user speaks, and when the server hears it) and its own faults.

import { ConfigurationError } from '../../../values/errors.ts';
import type {
  FakeUser,
  FakeVoiceModel,
  ReceivedFrame,
  TranscriptTiming,
  UserSpeech,
  VoiceServerOptions,
  VoiceStep,
  VoiceWire,
} from './control.ts';
import type { EnginePorts, VoiceEngine, EngineFaults } from './engine.ts';
import { ReplyRecord } from './reply-record.ts';
import { outletOf, type Outlet, type FrameTaker, type Link } from './outlet.ts';
import { createEventQueue } from './event-queue.ts';
import { echoResponder } from './echo-responder.ts';
import type { Scheduler } from '../../../actors/ports/environment.ts';
import { speechMs } from './sound.ts';
import type { FakeFaults } from './fault-control.ts';

const CLOSED_WITHOUT_A_WORD = 1006;

export interface ConnectionSettings {
  readonly wire: VoiceWire;
  readonly number: number;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly preset: unknown;
  readonly options: VoiceServerOptions;
  readonly link: Link;
  readonly createEngine: (ports: EnginePorts) => VoiceEngine;
  readonly forget: () => void;
}

/** A connection, and the side of its socket that the host uses. */
export interface FakeConnection extends FakeVoiceModel, FrameTaker {
  /** Handles the opening of the socket. */
  open(): void;
}

export function fakeConnection(settings: ConnectionSettings): FakeConnection {
  const { wire, number, url, headers, options, link, preset } = settings;
  const { environment, respond = echoResponder, keepFrames = true } = options;
  const { clock, scheduler } = environment;
  const received: ReceivedFrame[] = [];
  const sent: Readonly<Record<string, unknown>>[] = [];
  const replies: ReplyRecord[] = [];
  const scripts: (readonly VoiceStep[])[] = [];
  const frames = createEventQueue<ReceivedFrame>();
  const outlet = outletOf(environment, link);
  const closed = Promise.withResolvers<number>();
  const configured = Promise.withResolvers<void>();
  const flags: EngineFaults = {
    silence: false,
    refuseResponses: { times: 0, code: '' },
    refuseConfiguration: null,
    deltasAfterCancel: false,
    duplicateCalls: false,
  };
  let isConfigured = false;
  let isOpen = true;
  const engine = settings.createEngine({
    environment,
    url,
    speed: options.speed ?? null,
    voiceActivity: options.voiceActivity ?? false,
    faults: flags,
    preset,
    nextTurn: (cause, instructions) =>
      flags.silence ? null : (scripts.shift() ?? respond({ cause, instructions, model })),
    beginReply(id, cause) {
      const reply = new ReplyRecord(id, cause);
      replies.push(reply);
      return reply;
    },
    send(event, text = JSON.stringify(event)) {
      if (!isOpen) return;
      if (keepFrames) sent.push(event as Readonly<Record<string, unknown>>);
      outlet.send(text);
    },
    close,
    received(frame) {
      const noted = { ...frame, at: clock.now() };
      if (keepFrames) received.push(noted);
      frames.push(noted);
    },
    configured() {
      isConfigured = true;
      configured.resolve();
    },
  });
  const user = scriptedUser(scheduler, engine);
  const faults = faultsOf({
    wire,
    flags,
    engine,
    outlet,
    drop: () => end(CLOSED_WITHOUT_A_WORD, outlet.terminate),
    close,
    forget: settings.forget,
  });

  function close(code: number, reason: string): void {
    end(code, () => outlet.close(code, reason));
  }

  function end(code: number, say: () => void): void {
    if (!isOpen) return;
    isOpen = false;
    user.stop();
    engine.end();
    for (const reply of replies) reply.end('cancelled');
    say();
    closed.resolve(code);
  }

  const model: FakeConnection = {
    wire,
    number,
    url,
    headers,
    closed: closed.promise,
    configured: configured.promise,
    user,
    faults,
    received,
    sent,
    replies,
    open: () => engine.open(),
    receive(text) {
      if (isOpen) engine.receive(text);
    },
    lost: (code) => end(code, outlet.end),
    get isOpen() {
      return isOpen;
    },
    answers(...steps) {
      if (!isConfigured) {
        throw new ConfigurationError(
          'NOT_CONFIGURED',
          'The model can speak when the client has configured the session: await `configured` first',
        );
      }
      return engine.answers(steps);
    },
    willAnswer: (...steps) => void scripts.push(steps),
    get reply() {
      return replies.findLast(({ status }) => status === 'in_progress') ?? null;
    },
    next: (type) => frames.next(type),
    get heardMs() {
      return engine.heardMs;
    },
    get instructions() {
      return engine.instructions;
    },
    get tools() {
      return engine.tools;
    },
    get items() {
      return engine.items;
    },
    get openCalls() {
      return engine.openCalls;
    },
  };
  const { maxConnectionMs } = options;
  if (maxConnectionMs !== undefined) faults.expire({ afterMs: maxConnectionMs });
  return model;
}

/** The text of one utterance, as the server hears it. */
interface Utterance {
  /** The text that the server has heard so far. */
  heard: string;
  readonly cancels: (() => void)[];
}

/** The user of a connection. `stop` ends the current utterance without sending an event to the server. */
function scriptedUser(scheduler: Scheduler, engine: VoiceEngine): FakeUser & { stop(): void } {
  let utterance: Utterance | null = null;

  function begins(): Utterance {
    if (utterance !== null) return utterance;
    const begun: Utterance = { heard: '', cancels: [] };
    utterance = begun;
    engine.userBegins();
    return begun;
  }

  function ends(
    text: string,
    { transcript = 'prompt' }: Pick<UserSpeech, 'transcript'> = {},
  ): void {
    const begun = begins();
    if (transcript === 'early') hear(begun, text.slice(begun.heard.length));
    stop();
    engine.userEnds(text, text.slice(begun.heard.length), transcript);
  }

  function stop(): void {
    const cancels = utterance?.cancels ?? [];
    utterance = null;
    for (const cancel of cancels) cancel();
  }

  function hear(begun: Utterance, words: string): void {
    if (words === '') return;
    begun.heard += words;
    engine.userSays(words);
  }

  return {
    get isSpeaking() {
      return utterance !== null;
    },
    begins: () => void begins(),
    ends,
    says(text, { durationMs = speechMs(text), transcript = 'prompt' } = {}) {
      const begun = begins();
      for (const { words, atMs } of arrivals(text, durationMs, transcript)) {
        begun.cancels.push(scheduler.schedule(() => hear(begun, words), atMs));
      }
      return new Promise((resolve) => {
        const end = (): void => {
          // The test may have already ended the utterance.
          if (utterance === begun) ends(text, { transcript });
          resolve();
        };
        begun.cancels.push(scheduler.schedule(end, durationMs), resolve);
      });
    },
    stop,
  };
}

/** Returns the times at which the server hears the pieces of an utterance. The last piece is heard at the end. */
function arrivals(
  text: string,
  durationMs: number,
  transcript: TranscriptTiming,
): { readonly words: string; readonly atMs: number }[] {
  if (transcript === 'early') return [{ words: text, atMs: durationMs / 2 }];
  if (transcript !== 'prompt' && transcript !== 'duplicated') return [];
  const words = text.match(/(?<!\s)\s*\S+/g) ?? [];
  return words.slice(0, -1).map((word, index) => ({
    words: word,
    atMs: (durationMs * (index + 1)) / words.length,
  }));
}

interface FaultParts {
  readonly wire: VoiceWire;
  readonly flags: EngineFaults;
  readonly engine: VoiceEngine;
  readonly outlet: Outlet;
  readonly drop: () => void;
  readonly close: (code: number, reason: string) => void;
  /** Deletes the states that a later connection could resume. */
  readonly forget: () => void;
}

function faultsOf({ wire, flags, engine, outlet, drop, close, forget }: FaultParts): FakeFaults {
  const only = <Fault>(name: string, fault: Fault | undefined): Fault => {
    if (fault !== undefined) return fault;
    const message = `The wire ${wire} has no fault \`${name}\``;
    throw new ConfigurationError('NOT_ON_THIS_WIRE', message);
  };
  const on = <Fault>(its: VoiceWire, fault: Fault): Fault | undefined =>
    wire === its ? fault : undefined;
  return {
    drop: (moment) => outlet.at(moment, drop),
    close: (code, reason = '', moment) => outlet.at(moment, () => close(code, reason)),
    expire: (moment) => outlet.at(moment, () => engine.expire()),
    goAway: (timeLeftMs) => only('goAway', engine.goAway)(timeLeftMs),
    forgetHandles: () => only('forgetHandles', on('gemini-live', forget))(),
    forgetSessions: () => only('forgetSessions', on('openai-live', forget))(),
    silence(isOn = true) {
      flags.silence = isOn;
    },
    refuseResponses(times = 1, code = 'server_error') {
      only('refuseResponses', on('openai-realtime', flags)).refuseResponses = { times, code };
    },
    refuseConfiguration(code = 'invalid_value') {
      const hasWord = wire !== 'gemini-live';
      only('refuseConfiguration', hasWord ? flags : undefined).refuseConfiguration = code;
    },
    deltasAfterCancel(isOn = true) {
      flags.deltasAfterCancel = isOn;
    },
    duplicateCalls(isOn = true) {
      flags.duplicateCalls = isOn;
    },
    cancelCalls: (callIds) => only('cancelCalls', engine.cancelCalls)(callIds),
    delayFrames: (ms) => outlet.delay(ms),
    stall: (isOn = true) => outlet.stall(isOn),
    malformed: (text = '{"type": "session.') => outlet.send(text),
    unknownEvent: (type = 'session.weather.changed') =>
      outlet.send(JSON.stringify(engine.unknownEvent(type))),
  };
}
