// One connection on any wire: the `FakeVoiceModel` of a test, between the engine of the protocol and the
// socket of a host.

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
} from './control.ts';
import type { EnginePorts, VoiceEngine } from './engine.ts';
import { FakeReplies } from './fake-replies.ts';
import { ScriptedUser } from './fake-user.ts';
import { ConnectionFaults } from './faults.ts';
import { Outlet, type Link } from './outlet.ts';
import { createEventQueue } from './event-queue.ts';
import { TurnSource, echoBrain } from './turn-source.ts';

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
    const { environment, brain = echoBrain, keepFrames = true } = options;
    this.wire = wire;
    this.number = number;
    this.url = url;
    this.headers = headers;
    this.#turns = new TurnSource(brain, this);
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

  /** Handles a frame of the client. */
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
