// The Live wire on a connection: how a session begins and ends, what its frames are, and
// that its time goes on. What events mean is the translator's.

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

/** What `transport.resumable` carries: a stored session that can be gone on from. */
export interface StoredSession {
  readonly sessionId: string;
  /** Of its configuration: a fork inherits it, so it is of use only where it is the same. */
  readonly configuration: string;
  /** What it was told and had not taken in yet. */
  readonly untaken: readonly string[];
}

export interface LiveWireOptions {
  readonly settings: OpenaiLiveSettings;
  readonly configuration: TransportConfiguration;
  /** The session that the connection goes on from. */
  readonly forkOf: StoredSession | null;
  /** Writes what the session does not. @defaultValue without marks */
  readonly notes?: NoteWriter | undefined;
  /** The conversation so far, as the commands that would tell it; asked for when the wire begins. */
  readonly history?: (() => readonly TransportCommand[]) | undefined;
}

/** A word for a configuration, the same for the same one. */
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
  /** What was offered last to go on from. */
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

  /** The server makes its record of the session complete before it closes. */
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
      // Nothing else was said yet, so it can only be meant for session.start, event id or not.
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

  /** Says how to go on from here, whenever that has changed. */
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
    // Sooner than that means that our clock and that of the server do not agree.
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

/** A new session would end in the same way: asked for, or because of what was said. */
const FINAL_REASONS: ReadonlySet<string> = new Set(['close_requested', 'content']);
