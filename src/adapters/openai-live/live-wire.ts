// The Live wire on a connection: the beginning and the end of a session, its frames, and its running time.
// The translator interprets the events.

import { createHash } from 'node:crypto';
import { unmarkedNotes, type NoteWriter } from '../../actors/notes/note-marks.ts';
import { encodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import { frameDurationMs, type AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { TransportCommand, TransportConfiguration } from '../../voice/connection/transport.ts';
import { classifyRefusedStart } from '../socket/close-codes.ts';
import { takeEvent } from '../socket/event-table.ts';
import type { Wire, WirePorts } from '../socket/wire.ts';
import { historyOf } from './history.ts';
import { InputClock, SILENCE_FRAME_MS } from './input-clock.ts';
import { startInstructions } from './model-words.ts';
import type { OpenaiLiveSettings } from './options.ts';
import { Translator } from './translator.ts';
import * as wire from './wire/index.ts';
import type { ServerEvent } from './wire/index.ts';

/** The value of `transport.resumable`: a stored session that can be resumed. */
export interface StoredSession {
  readonly sessionId: string;
  /**
   * The fingerprint of its configuration: a fork inherits it, so the session is usable only for an equal one.
   */
  readonly configuration: string;
  /** The texts that it was sent and had not taken in yet. */
  readonly untaken: readonly string[];
}

export interface LiveWireOptions {
  readonly settings: OpenaiLiveSettings;
  readonly configuration: TransportConfiguration;
  /** The session that the connection resumes. */
  readonly forkOf: StoredSession | null;
  /** Writes notes for texts that the session does not write. @defaultValue without marks */
  readonly notes?: NoteWriter | undefined;
  /** The conversation so far, as the commands that tell it; requested when the wire begins. */
  readonly history?: (() => readonly TransportCommand[]) | undefined;
}

/** Returns a fingerprint; equal configurations have equal ones. */
export function fingerprintOf(
  { model, voice }: Pick<OpenaiLiveSettings, 'model' | 'voice'>,
  configuration: TransportConfiguration,
): string {
  const text = JSON.stringify([model, voice, startInstructions(configuration)]);
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

export class LiveWire implements Wire {
  readonly #options: LiveWireOptions;
  readonly #ports: WirePorts;
  readonly #translator: Translator;
  readonly #notes: NoteWriter;
  readonly #clock: InputClock;
  readonly #silence: string;
  readonly #fingerprint: string;
  #isReady = false;
  #sessionId = '';
  /** The resume value offered last. */
  #offered = '';
  #lastEventNumber = 0;
  #cancelExpiry: () => void = () => {};

  constructor(options: LiveWireOptions, ports: WirePorts) {
    this.#options = options;
    this.#ports = ports;
    this.#notes = options.notes ?? unmarkedNotes;
    const { sampleRateHz, times } = options.settings;
    this.#fingerprint = fingerprintOf(options.settings, options.configuration);
    const frame = new Int16Array((sampleRateHz * SILENCE_FRAME_MS) / 1000);
    this.#silence = wire.audioAppendText(encodePcm16Base64(frame));
    this.#clock = new InputClock(ports.environment, () => ports.send(this.#silence));
    this.#translator = new Translator({
      times,
      sampleRateHz,
      environment: ports.environment,
      notes: this.#notes,
      newEventId: () => this.#newEventId(),
      send: (events) => {
        for (const event of events) ports.send(JSON.stringify(event));
      },
      emit: (event) => ports.emit(event),
      emitAudio: (audio) => ports.emitAudio(audio),
      toSessionMs: (serverMs) => ports.toSessionMs(this.#clock.toSentMs(serverMs)),
      redact: (text) => ports.redact(text),
    });
  }

  start(): readonly string[] {
    const { settings, configuration, forkOf, history } = this.#options;
    const eventId = this.#newEventId();
    const start = forkOf
      ? wire.forkStart(eventId, settings)
      : wire.sessionStart(
          eventId,
          settings,
          startInstructions(configuration),
          historyOf(history?.() ?? [], this.#notes),
        );
    return [JSON.stringify(start)];
  }

  write(command: TransportCommand): readonly string[] {
    const events = this.#translator.toWire(command);
    this.#offer();
    return events.map((event) => JSON.stringify(event));
  }

  writeAudio(frame: AudioFrame): string {
    this.#clock.sent(frameDurationMs(frame));
    return wire.audioAppendText(encodePcm16Base64(frame.samples));
  }

  read(text: string): void {
    takeEvent(wire.parseServerEvent(text), this.#ports, (event) => this.#onEvent(event));
  }

  /** The server completes its record of the session before it closes. */
  farewell(): readonly string[] {
    return [JSON.stringify(wire.sessionClose(this.#newEventId()))];
  }

  stop(): void {
    this.#cancelExpiry();
    this.#clock.stop();
    this.#translator.stop();
  }

  #onEvent(event: ServerEvent): void {
    if (event.type === 'session.started') this.#onStarted(event.session);
    else if (event.type === 'session.closed') this.#onClosed(event);
    else {
      this.#translator.fromWire(event);
      this.#offer();
      // No other event was sent yet, so the error concerns session.start, with or without an event id.
      if (event.type === 'error' && !this.#isReady)
        this.#ports.finish(classifyRefusedStart(event.error));
    }
  }

  #onStarted(session: { readonly id: string; readonly expires_at?: number | null }): void {
    if (this.#isReady) return;
    this.#isReady = true;
    this.#sessionId = session.id;
    const { forkOf, history } = this.#options;
    const untaken = forkOf?.untaken.flatMap((text) => this.#translator.tell(text)) ?? [];
    for (const event of untaken) this.#ports.send(JSON.stringify(event));
    this.#clock.start();
    this.#ports.ready(forkOf !== null, forkOf === null && history !== undefined);
    this.#offer();
    if (session.expires_at) this.#watchExpiry(session.expires_at * 1000);
  }

  /** Offers a resume value whenever it has changed. */
  #offer(): void {
    if (!this.#options.settings.store || !this.#isReady) return;
    const resume: StoredSession = {
      sessionId: this.#sessionId,
      configuration: this.#fingerprint,
      untaken: this.#translator.untaken,
    };
    const offered = JSON.stringify(resume);
    if (offered === this.#offered) return;
    this.#offered = offered;
    this.#ports.emit({ type: 'transport.resumable', resume });
  }

  #watchExpiry(expiresAt: number): void {
    const { clock, scheduler } = this.#ports.environment;
    const { expiryNoticeMs } = this.#options.settings;
    const delayMs = expiresAt - expiryNoticeMs - clock.now();
    // An earlier time means that the clocks of client and server differ.
    if (delayMs <= 0) return;
    this.#cancelExpiry = scheduler.schedule(
      () => this.#ports.emit({ type: 'transport.expiring', inMs: expiryNoticeMs }),
      delayMs,
      { isBackground: true },
    );
  }

  #onClosed({ reason, usage }: Extract<ServerEvent, { type: 'session.closed' }>): void {
    if (usage)
      this.#ports.emit({
        type: 'usage.reported',
        inputTokens: null,
        outputTokens: null,
        raw: usage,
      });
    this.#ports.finish({
      code: null,
      reason: `The server ended the session: ${this.#ports.redact(reason)}`,
      retryable: !FINAL_REASONS.has(reason),
    });
  }

  #newEventId(): string {
    this.#lastEventNumber += 1;
    return `event_${this.#lastEventNumber}`;
  }
}

/** A new session would end in the same way: the end was requested, or caused by the content. */
const FINAL_REASONS: ReadonlySet<string> = new Set(['close_requested', 'content']);
