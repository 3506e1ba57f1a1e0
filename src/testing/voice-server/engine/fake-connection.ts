// One connection with any protocol: a test's `FakeVoiceModel`, between the protocol's engine and a host's socket, with
// its user (when they speak, and when the server hears their words) and its faults.

import { ConfigurationError } from '../../../values/errors.ts';
import type {
  FakeItem,
  FakeReply,
  FakeTool,
  FakeVoiceModel,
  ReceivedFrame,
  VoiceServerOptions,
  VoiceStep,
  VoiceWire,
  FakeUser,
  UserSpeech,
  TranscriptTiming,
} from './control.ts';
import type { EnginePorts, VoiceEngine, EngineFaults } from './engine.ts';
import { FakeReplies } from './fake-replies.ts';
import { Outlet, type Link } from './outlet.ts';
import { createEventQueue } from './event-queue.ts';
import { TurnSource, echoResponder } from './turn-source.ts';
import type { Scheduler } from '../../../actors/ports/environment.ts';
import { speechMs } from './sound.ts';
import type { FakeFaults, FaultMoment } from './fault-control.ts';

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

export class FakeConnection implements FakeVoiceModel {
  readonly wire: VoiceWire;
  readonly number: number;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly closed: Promise<number>;
  readonly configured: Promise<void>;
  readonly user: ScriptedUser;
  readonly faults: ConnectionFaults;
  readonly received: ReceivedFrame[] = [];
  readonly sent: Readonly<Record<string, unknown>>[] = [];

  readonly #replies = new FakeReplies();
  readonly #frames = createEventQueue<ReceivedFrame>();
  readonly #turns: TurnSource;
  readonly #engine: VoiceEngine;
  readonly #outlet: Outlet;
  #resolveClosed: (code: number) => void = () => {};
  #isConfigured = false;
  #isOpen = true;

  constructor(settings: ConnectionSettings) {
    const { wire, number, url, headers, options, link } = settings;
    const { environment, respond = echoResponder, keepFrames = true } = options;
    this.wire = wire;
    this.number = number;
    this.url = url;
    this.headers = headers;
    this.#turns = new TurnSource(respond, this);
    this.#outlet = new Outlet(environment, link);
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    let configured = (): void => {};
    this.configured = new Promise((resolve) => {
      configured = resolve;
    });
    const flags = {
      refuseResponses: { times: 0, code: '' },
      refuseConfiguration: null,
      deltasAfterCancel: false,
      duplicateCalls: false,
    };
    this.#engine = settings.createEngine({
      environment,
      url,
      speed: options.speed ?? null,
      voiceActivity: options.voiceActivity ?? false,
      turns: this.#turns,
      replies: this.#replies,
      faults: flags,
      preset: settings.preset,
      send: (event, text = JSON.stringify(event)) => {
        if (!this.#isOpen) return;
        if (keepFrames) this.sent.push(event as Readonly<Record<string, unknown>>);
        this.#outlet.send(text);
      },
      close: (code, reason) => this.#close(code, reason),
      received: (frame) => {
        const noted = { ...frame, at: environment.clock.now() };
        if (keepFrames) this.received.push(noted);
        this.#frames.push(noted);
      },
      configured: () => {
        this.#isConfigured = true;
        configured();
      },
    });
    this.user = new ScriptedUser(environment.scheduler, this.#engine);
    this.faults = new ConnectionFaults({
      wire,
      flags,
      engine: this.#engine,
      outlet: this.#outlet,
      turns: this.#turns,
      drop: () => this.#end(CLOSED_WITHOUT_A_WORD, () => this.#outlet.terminate()),
      close: (code, reason) => this.#close(code, reason),
      forget: settings.forget,
    });
    const { maxConnectionMs } = options;
    if (maxConnectionMs !== undefined) this.faults.expire({ afterMs: maxConnectionMs });
  }

  /** Handles the opening of the socket. */
  open(): void {
    this.#engine.open();
  }

  /** Handles a client frame. */
  receive(text: string): void {
    if (this.#isOpen) this.#engine.receive(text);
  }

  /** Handles the loss of the client. */
  lost(code: number): void {
    this.#end(code, () => this.#outlet.end());
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  answers(...steps: VoiceStep[]): FakeReply {
    if (!this.#isConfigured) {
      throw new ConfigurationError(
        'NOT_CONFIGURED',
        'The model can speak when the client has configured the session: await `configured` first',
      );
    }
    return this.#engine.answers(steps);
  }

  willAnswer(...steps: VoiceStep[]): void {
    this.#turns.add(steps);
  }

  get replies(): readonly FakeReply[] {
    return this.#replies.all;
  }

  get reply(): FakeReply | null {
    return this.#replies.current;
  }

  next(type: string): Promise<ReceivedFrame> {
    return this.#frames.next(type);
  }

  get heardMs(): number {
    return this.#engine.heardMs;
  }

  get instructions(): string {
    return this.#engine.instructions;
  }

  get tools(): readonly FakeTool[] {
    return this.#engine.tools;
  }

  get items(): readonly FakeItem[] {
    return this.#engine.items;
  }

  get openCalls(): readonly { readonly callId: string; readonly name: string }[] {
    return this.#engine.openCalls;
  }

  #close(code: number, reason: string): void {
    this.#end(code, () => this.#outlet.close(code, reason));
  }

  #end(code: number, say: () => void): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.user.stop();
    this.#engine.end();
    for (const reply of this.#replies.all) reply.end('cancelled');
    say();
    this.#resolveClosed(code);
  }
}

/** The words of one utterance, as the server hears them. */
interface Utterance {
  /** The words that the server has heard so far. */
  heard: string;
  readonly cancels: (() => void)[];
}

export class ScriptedUser implements FakeUser {
  readonly #scheduler: Scheduler;
  readonly #engine: VoiceEngine;
  #utterance: Utterance | null = null;

  constructor(scheduler: Scheduler, engine: VoiceEngine) {
    this.#scheduler = scheduler;
    this.#engine = engine;
  }

  get isSpeaking(): boolean {
    return this.#utterance !== null;
  }

  begins(): void {
    if (this.#utterance !== null) return;
    this.#utterance = { heard: '', cancels: [] };
    this.#engine.userBegins();
  }

  ends(text: string, { transcript = 'prompt' }: Pick<UserSpeech, 'transcript'> = {}): void {
    this.begins();
    const utterance = this.#utterance as Utterance;
    if (transcript === 'early') this.#hear(utterance, text.slice(utterance.heard.length));
    this.stop();
    this.#engine.userEnds(text, text.slice(utterance.heard.length), transcript);
  }

  says(text: string, speech: UserSpeech = {}): Promise<void> {
    const { durationMs = speechMs(text), transcript = 'prompt' } = speech;
    this.begins();
    const utterance = this.#utterance as Utterance;
    for (const { words, atMs } of arrivals(text, durationMs, transcript)) {
      utterance.cancels.push(this.#scheduler.schedule(() => this.#hear(utterance, words), atMs));
    }
    return new Promise((resolve) => {
      const end = (): void => {
        // The test may have ended the utterance.
        if (this.#utterance === utterance) this.ends(text, { transcript });
        resolve();
      };
      utterance.cancels.push(this.#scheduler.schedule(end, durationMs), resolve);
    });
  }

  /** Ends the current utterance without an event for the server. */
  stop(): void {
    const cancels = this.#utterance?.cancels ?? [];
    this.#utterance = null;
    for (const cancel of cancels) cancel();
  }

  #hear(utterance: Utterance, words: string): void {
    if (words === '') return;
    utterance.heard += words;
    this.#engine.userSays(words);
  }
}

/** Returns when words are heard while the user speaks; the last words are left for the end. */
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

export interface FaultParts {
  readonly wire: VoiceWire;
  readonly flags: EngineFaults;
  readonly engine: VoiceEngine;
  readonly outlet: Outlet;
  readonly turns: TurnSource;
  readonly drop: () => void;
  readonly close: (code: number, reason: string) => void;
  /** Forgets the states that a later connection could resume. */
  readonly forget: () => void;
}

export class ConnectionFaults implements FakeFaults {
  readonly #parts: FaultParts;

  constructor(parts: FaultParts) {
    this.#parts = parts;
  }

  drop(moment?: FaultMoment): void {
    this.#parts.outlet.at(moment, this.#parts.drop);
  }

  close(code: number, reason = '', moment?: FaultMoment): void {
    this.#parts.outlet.at(moment, () => this.#parts.close(code, reason));
  }

  expire(moment?: FaultMoment): void {
    this.#parts.outlet.at(moment, () => this.#parts.engine.expire());
  }

  goAway(timeLeftMs: number): void {
    const { engine } = this.#parts;
    this.#only('goAway', engine.goAway).call(engine, timeLeftMs);
  }

  forgetHandles(): void {
    this.#only('forgetHandles', this.#on('gemini-live', this.#parts.forget))();
  }

  forgetSessions(): void {
    this.#only('forgetSessions', this.#on('openai-live', this.#parts.forget))();
  }

  silence(on = true): void {
    this.#parts.turns.isSilent = on;
  }

  refuseResponses(times = 1, code = 'server_error'): void {
    this.#only(
      'refuseResponses',
      this.#on('openai-realtime', () => {
        this.#parts.flags.refuseResponses = { times, code };
      }),
    )();
  }

  refuseConfiguration(code = 'invalid_value'): void {
    const refuse = (): void => {
      this.#parts.flags.refuseConfiguration = code;
    };
    const hasWord = this.#parts.wire !== 'gemini-live';
    this.#only('refuseConfiguration', hasWord ? refuse : undefined)();
  }

  deltasAfterCancel(on = true): void {
    this.#parts.flags.deltasAfterCancel = on;
  }

  duplicateCalls(on = true): void {
    this.#parts.flags.duplicateCalls = on;
  }

  cancelCalls(callIds?: readonly string[]): void {
    const { engine } = this.#parts;
    this.#only('cancelCalls', engine.cancelCalls).call(engine, callIds);
  }

  delayFrames(ms: number): void {
    this.#parts.outlet.delay(ms);
  }

  stall(on = true): void {
    this.#parts.outlet.stall(on);
  }

  malformed(text = '{"type": "session.'): void {
    this.#parts.outlet.send(text);
  }

  unknownEvent(type = 'session.weather.changed'): void {
    this.#parts.outlet.send(JSON.stringify(this.#parts.engine.unknownEvent(type)));
  }

  #on<Fault>(wire: VoiceWire, fault: Fault): Fault | undefined {
    return this.#parts.wire === wire ? fault : undefined;
  }

  #only<Fault>(name: string, fault: Fault | undefined): Fault {
    if (fault !== undefined) return fault;
    const message = `The wire ${this.#parts.wire} has no fault \`${name}\``;
    throw new ConfigurationError('NOT_ON_THIS_WIRE', message);
  }
}
