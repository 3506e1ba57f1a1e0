// The Realtime wire on a connection: its configuration, its frames, and its end. The translator interprets
// the events.

import { encodePcm16Base64 } from '../../voice/audio/pcm16.ts';
import type { AudioFrame } from '../../voice/audio/audio-frame.ts';
import type { TransportCommand, TransportConfiguration } from '../../voice/connection/transport.ts';
import { classifyRefusedStart, type Ending } from '../socket/close-codes.ts';
import { takeEvent } from '../socket/event-table.ts';
import type { Wire, WirePorts } from '../socket/wire.ts';
import { Expiry } from './expiry.ts';
import type { OpenaiRealtimeSettings } from './options.ts';
import { Translator, type ClientEvent } from './translator.ts';
import { audioAppendText, parseServerEvent, type ServerEvent } from './wire/index.ts';

export class RealtimeWire implements Wire {
  readonly #ports: WirePorts;
  readonly #translator: Translator;
  readonly #expiry: Expiry;
  readonly #start: ClientEvent;
  #isReady = false;
  /** Whether the server announced its end before it closed. */
  #isExpired = false;

  constructor(
    settings: OpenaiRealtimeSettings,
    configuration: TransportConfiguration,
    ports: WirePorts,
  ) {
    this.#ports = ports;
    this.#translator = new Translator({
      configuration,
      emit: (event) => ports.emit(event),
      emitAudio: (frame) => ports.emitAudio(frame),
      toSessionMs: (serverMs) => ports.toSessionMs(serverMs),
      redact: (text) => ports.redact(text),
    });
    this.#expiry = new Expiry(ports.environment, (inMs) =>
      ports.emit({ type: 'transport.expiring', inMs }),
    );
    this.#start = this.#translator.start(settings);
  }

  start(): readonly string[] {
    return [JSON.stringify(this.#start)];
  }

  write(command: TransportCommand): readonly string[] {
    const event = this.#translator.toWire(command);
    return event === null ? [] : [JSON.stringify(event)];
  }

  writeAudio(frame: AudioFrame): string {
    return audioAppendText(encodePcm16Base64(frame.samples));
  }

  read(text: string): void {
    takeEvent(parseServerEvent(text), this.#ports, (event) => this.#onEvent(event));
  }

  stop(): void {
    this.#expiry.stop();
  }

  closed(ending: Ending): Ending {
    return { ...ending, retryable: ending.retryable || this.#isExpired };
  }

  #onEvent(event: ServerEvent): void {
    if (event.type === 'session.updated') {
      if (this.#isReady) this.#translator.configured();
      else {
        this.#isReady = true;
        this.#expiry.known(event.session?.expires_at);
        this.#ports.ready();
      }
      return;
    }
    this.#translator.fromWire(event);
    if (event.type !== 'error') return;
    if (event.error.code === 'session_expired') this.#isExpired = true;
    // No other event was sent yet, so the error concerns session.update, with or without an event id.
    if (!this.#isReady) this.#ports.finish(classifyRefusedStart(event.error));
  }
}
