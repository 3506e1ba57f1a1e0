// The Gemini Live wire on a connection: its configuration, its resumption, its frames, and its end. The
// translator interprets the messages.

import { unmarkedNotes } from '../../actors/notes/note-marks.ts';
import { OffstageError, messageOf } from '../../values/errors.ts';
import { encodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import { frameDurationMs, type AudioFrame } from '../../voice/audio/audio-frame.ts';
import type {
  TransportCommand,
  TransportConfiguration,
  TransportContext,
} from '../../voice/connection/transport.ts';
import type { Ending } from '../socket/close-codes.ts';
import type { Wire, WirePorts } from '../socket/wire.ts';
import type { GeminiLiveSettings } from './options.ts';
import { Resumption, usableToken, type ResumeToken } from './resumption.ts';
import { ToolCalls } from './tool-calls.ts';
import { Translator } from './translator.ts';
import * as wire from './wire/index.ts';

/** Time without sound after which the microphone counts as off. */
const STREAM_END_MS = 1_000;
/** The server also uses these codes for handles that it cannot resume. */
const REFUSED_HANDLE_CODES: ReadonlySet<number | null> = new Set([1007, 1008, 1011]);

export class GeminiWire implements Wire {
  readonly #ports: WirePorts;
  readonly #settings: GeminiLiveSettings;
  readonly #configuration: TransportConfiguration;
  readonly #token: ResumeToken | null;
  readonly #translator: Translator;
  readonly #resumption: Resumption;
  /** The history that the model gets before all else; null: the session sends it. */
  readonly #history: readonly wire.Turn[] | null;
  #isReady = false;
  /** Whether the server has shown that it continues with its previous state. */
  #hasGoneOn = false;
  #isExpiring = false;
  #sentMs = 0;
  #soundAt = 0;
  #cancelStreamEnd: (() => void) | null = null;

  constructor(
    settings: GeminiLiveSettings,
    configuration: TransportConfiguration,
    ports: WirePorts,
    {
      resume,
      history,
      notes = unmarkedNotes,
    }: Pick<TransportContext, 'resume' | 'history' | 'notes'>,
  ) {
    this.#ports = ports;
    this.#settings = settings;
    this.#configuration = configuration;
    this.#token = usableToken(resume);
    const calls = this.#token?.calls ?? new ToolCalls();
    this.#resumption = new Resumption((event) => ports.emit(event), calls);
    this.#translator = new Translator(
      {
        environment: ports.environment,
        notes,
        emit: (event) => ports.emit(event),
        emitAudio: (frame) => ports.emitAudio(frame),
        send: (message, lasting) => this.#send(message, lasting),
        report: (code, message, raw) => ports.report(code, message, raw),
        sentMs: () => this.#sentMs,
        toSessionMs: (serverMs) => ports.toSessionMs(serverMs),
        happened: () => this.#resumption.withdraw(),
      },
      settings.traits,
      calls,
    );
    // A resumed session knows the history.
    this.#history = this.#token || !history ? null : this.#translator.history(history());
  }

  start(): readonly string[] {
    const { traits } = this.#settings;
    const message = wire.setup(this.#settings, this.#configuration, {
      toolBehavior: traits.duringCall === 'goes_on' ? 'NON_BLOCKING' : null,
      beginsWithHistory: this.#isSeeded,
      handle: this.#token?.handle ?? null,
    });
    return [JSON.stringify(message)];
  }

  /** Sends no message at once: commands of one turn of the loop are combined, when they may be sent. */
  write(command: TransportCommand): readonly string[] {
    this.#translator.toWire(command);
    return [];
  }

  writeAudio(frame: AudioFrame): string {
    this.#sentMs += frameDurationMs(frame);
    this.#soundAt = this.#ports.environment.clock.now();
    if (this.#cancelStreamEnd === null) this.#watchSound(STREAM_END_MS);
    this.#resumption.sent(null);
    return wire.audioText(encodePcm16Base64(frame.samples));
  }

  read(text: string): void {
    const parsed = wire.parseServerMessage(text);
    if (parsed.kind === 'malformed') return this.#ports.malformed(parsed.message, parsed.raw);
    for (const name of parsed.unknown) this.#ports.unknown(name, parsed.raw);
    try {
      this.#onMessage(parsed.message, parsed.raw);
    } catch (error) {
      const code = error instanceof OffstageError ? error.code : 'INTERNAL';
      this.#ports.malformed(messageOf(error), parsed.raw, code);
    }
  }

  closed(ending: Ending): Ending {
    if (this.#token !== null && !this.#hasGoneOn && REFUSED_HANDLE_CODES.has(ending.code)) {
      this.#token.isRefused = true;
      return { ...ending, retryable: true };
    }
    // An end before readiness means that the server rejects the key, the model or the setup.
    const mayPass = this.#isReady && (ending.code === 1007 || ending.code === 1008);
    return { ...ending, retryable: ending.retryable || mayPass || this.#isExpiring };
  }

  stop(): void {
    this.#cancelStreamEnd?.();
    this.#translator.stop();
  }

  /** Whether the server gets a history before all else, and waits for it. */
  get #isSeeded(): boolean {
    return this.#settings.traits.seedsHistory && (this.#history?.length ?? 0) > 0;
  }

  #onMessage(message: wire.ServerMessage, raw: unknown): void {
    if (message.setupComplete && !this.#isReady) this.#becomeReady();
    if (message.serverContent || message.toolCall) this.#hasGoneOn = true;
    if (message.goAway) {
      this.#isExpiring = true;
      const inMs = wire.durationMs(message.goAway.timeLeft) ?? 0;
      this.#ports.emit({ type: 'transport.expiring', inMs });
    }
    this.#translator.fromWire(message, raw);
    // Before its first message the server may not have taken the history in.
    const isKnown = this.#hasGoneOn || (this.#history ?? []).length === 0;
    if (message.sessionResumptionUpdate && isKnown) {
      this.#resumption.updated(message.sessionResumptionUpdate);
    }
  }

  #becomeReady(): void {
    this.#isReady = true;
    const unconsumed = this.#token?.unconsumed ?? [];
    for (const message of unconsumed) this.#send(message, message);
    const history = this.#history ?? [];
    if (history.length > 0) {
      this.#send(wire.clientContent(history, this.#isSeeded), null);
    }
    this.#translator.open();
    this.#ports.ready(this.#token !== null, this.#history !== null);
  }

  #send(message: object, lasting: object | null): void {
    this.#resumption.sent(lasting);
    this.#ports.send(JSON.stringify(message));
  }

  /** One timer serves many frames. */
  #watchSound(delayMs: number): void {
    const { clock, scheduler } = this.#ports.environment;
    this.#cancelStreamEnd = scheduler.schedule(() => {
      const leftMs = this.#soundAt + STREAM_END_MS - clock.now();
      if (leftMs > 0) return this.#watchSound(leftMs);
      this.#cancelStreamEnd = null;
      this.#send(wire.audioStreamEnd(), null);
    }, delayMs);
  }
}
