// Who may import whom in src/: the table that the rule `offstage/import-direction`
// enforces. Paths are relative to src/; a folder stands for everything below it.

import { readFileSync } from 'node:fs';

/** One part of src/ and all that it may import. */
export interface Layer {
  /** The file or folder that this row speaks of. `adapters/*` is one row for each adapter. */
  readonly files: string;
  /** Files and folders of src/ that it may import, beside its own. */
  readonly sources: readonly string[];
  /** Packages that it may import, subpaths included; `node:` stands for every built-in module. */
  readonly packages: readonly string[];
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as Manifest;

/** What somebody who installs the package has, or can add. */
const declaredPackages = [
  ...Object.keys(manifest.dependencies),
  ...Object.keys(manifest.peerDependencies),
];

const runtimePackages = ['xstate', '@xstate/store', 'ai', 'zod', 'rxjs'];

/** What an adapter sees of the rest: ports, and pure helpers for sound and speech. */
const portSources = [
  'actors/secrets.ts',
  'actors/without-undefined.ts',
  'adapters/journal-rows',
  'adapters/listen',
  'adapters/socket',
  'checks.ts',
  'errors.ts',
  'actors/ports',
  // An adapter that tells a model something in words writes a note.
  'actors/notes',
  'voice/transport.ts',
  'voice/audio-frame.ts',
  'voice/audio',
  'voice/spoken',
];

/** The first row whose `files` holds a file decides for it; a file without a row may import nothing. */
export const layers: readonly Layer[] = [
  { files: 'errors.ts', sources: [], packages: [] },
  { files: 'checks.ts', sources: ['actors/secrets.ts', 'errors.ts'], packages: ['zod'] },
  { files: 'machines', sources: ['errors.ts'], packages: ['xstate'] },
  { files: 'actors', sources: ['machines', 'checks.ts', 'errors.ts'], packages: runtimePackages },
  {
    files: 'voice',
    sources: ['actors', 'machines', 'checks.ts', 'errors.ts'],
    packages: runtimePackages,
  },
  {
    // Its Realtime wire is that of the local voice's server; it speaks over sockets.
    files: 'testing/voice-server',
    sources: [
      'testing/conformance',
      'adapters/listen',
      'adapters/local-voice',
      'adapters/socket',
      'voice',
      'actors',
      'checks.ts',
      'errors.ts',
    ],
    packages: [...declaredPackages, 'node:'],
  },
  // Recordings are files.
  {
    files: 'testing/recording',
    sources: ['actors', 'checks.ts', 'errors.ts'],
    packages: ['node:'],
  },
  {
    files: 'testing',
    sources: ['voice', 'actors', 'machines', 'checks.ts', 'errors.ts'],
    packages: runtimePackages,
  },
  {
    files: 'adapters/local-voice',
    sources: [...portSources, 'adapters/openai-realtime/wire', 'adapters/openai-realtime/wire.ts'],
    packages: [...declaredPackages, 'node:'],
  },
  { files: 'adapters/*', sources: portSources, packages: [...declaredPackages, 'node:'] },
  // The command line is an app of its own.
  {
    files: 'cli',
    sources: [
      'adapters',
      'testing',
      'voice',
      'actors',
      'machines',
      'checks.ts',
      'errors.ts',
      'index.ts',
    ],
    packages: [...declaredPackages, 'node:'],
  },
  // The one place that chooses for the app: real time, unless it is given another.
  {
    files: 'real-time.ts',
    sources: ['checks.ts', 'errors.ts', 'voice', 'actors', 'adapters/node'],
    packages: ['zod'],
  },
  {
    files: 'index.ts',
    sources: ['real-time.ts', 'voice', 'actors', 'machines', 'checks.ts', 'errors.ts'],
    packages: [],
  },
];
