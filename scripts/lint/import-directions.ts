// The table of allowed imports in src/, which the rule `offstage/import-direction` enforces. Paths are relative to
// src/; a folder stands for everything in it.

import { readFileSync } from 'node:fs';

/** A part of src/ and its allowed imports. */
export interface Layer {
  /** The file or folder of this row. `adapters/*` is one row for each adapter. */
  readonly files: string;
  /** Other files and folders of src/ that it may import. */
  readonly sources: readonly string[];
  /** Packages that it may import, including subpaths; `node:` means every built-in module. */
  readonly packages: readonly string[];
}

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as Manifest;

/** The packages that an installation of Offstage contains or can add. */
const declaredPackages = [
  ...Object.keys(manifest.dependencies),
  ...Object.keys(manifest.peerDependencies),
];

const runtimePackages = ['xstate', '@xstate/store', 'ai', 'croner', 'zod', 'rxjs'];

/** The parts that an adapter may import: ports, and pure helpers for audio, speech and text. */
const portSources = [
  'adapters/agent-process',
  'adapters/journal-rows',
  'adapters/listen',
  'adapters/relays',
  'adapters/socket',
  'values',
  'language',
  'actors/ports',
  // A relay or an engine loads the code that executes a subagent's steps.
  'actors/subagent/relay-loop.ts',
  'actors/subagent/step-jobs.ts',
  // An adapter that passes a message to a model as text writes a note.
  'actors/notes',
  'voice/connection/transport.ts',
  'voice/audio',
  'voice/speech',
  // A transport loads the code that leads a session by voice.
  'voice/spoken-lead.ts',
];

/** The first row whose `files` contains a file decides for it. A file without a row may import nothing. */
export const layers: readonly Layer[] = [
  // Plain values, errors and argument checks, for every room.
  {
    files: 'values',
    sources: [],
    packages: ['ai', 'zod'],
  },
  {
    files: 'actors/notes',
    sources: ['values'],
    packages: ['ai'],
  },
  // Charts only.
  {
    files: 'machines',
    sources: [],
    packages: ['xstate'],
  },
  // The ports of an app: time and randomness, the journal, and stores.
  {
    files: 'actors/ports',
    sources: ['machines', 'values'],
    packages: ['ai', 'zod'],
  },
  // Types that the rooms below share.
  {
    files: 'actors/contracts',
    sources: ['actors/notes', 'actors/ports', 'machines', 'values'],
    packages: ['ai', 'rxjs', 'zod'],
  },
  // The kernel: commit units, router, hosting, snapshots.
  {
    files: 'actors/runtime',
    sources: ['actors/contracts', 'actors/ports', 'machines', 'values'],
    packages: ['rxjs', 'xstate', 'zod'],
  },
  {
    files: 'actors/admission',
    sources: ['actors/contracts', 'actors/ports', 'actors/runtime', 'machines', 'values'],
    packages: ['xstate', 'zod'],
  },
  {
    files: 'actors/conversation',
    sources: ['actors/contracts', 'actors/notes', 'values'],
    packages: ['ai', 'zod'],
  },
  // Interpreting what users say.
  {
    files: 'language',
    sources: ['values'],
    packages: [],
  },
  // The seam to the AI SDK.
  {
    files: 'actors/model',
    sources: [
      'actors/contracts',
      'actors/notes',
      'actors/ports',
      'actors/runtime',
      'language',
      'values',
    ],
    packages: ['ai', 'zod'],
  },
  {
    files: 'actors/context',
    sources: [
      'actors/contracts',
      'actors/conversation',
      'actors/model',
      'actors/notes',
      'actors/ports',
      'actors/runtime',
      'values',
    ],
    packages: ['ai', 'zod'],
  },
  // One subagent, which knows nothing of others.
  {
    files: 'actors/subagent',
    sources: [
      'actors/admission',
      'actors/context',
      'actors/contracts',
      'actors/conversation',
      'actors/model',
      'actors/notes',
      'actors/ports',
      'actors/runtime',
      'machines',
      'values',
    ],
    packages: ['ai', 'xstate', 'zod'],
  },
  {
    files: 'memory',
    sources: ['actors/contracts', 'actors/model', 'actors/ports', 'actors/runtime', 'values'],
    packages: ['ai', 'zod'],
  },
  {
    files: 'results',
    sources: [
      'actors/contracts',
      'actors/model',
      'actors/notes',
      'actors/ports',
      'actors/runtime',
      'actors/subagent',
      'language',
      'memory',
      'values',
    ],
    packages: ['ai', 'zod'],
  },
  // A session, room by room.
  {
    files: 'actors/session/state',
    sources: [
      'actors/contracts',
      'actors/conversation',
      'actors/notes',
      'actors/runtime',
      'machines',
      'results',
      'values',
    ],
    packages: ['@xstate/store', 'rxjs', 'zod'],
  },
  {
    files: 'actors/session/unit',
    sources: [
      'actors/admission',
      'actors/contracts',
      'actors/conversation',
      'actors/ports',
      'actors/runtime',
      'actors/session/state',
      'actors/subagent',
      'machines',
      'values',
    ],
    packages: ['xstate', 'zod'],
  },
  {
    files: 'actors/session/questions',
    sources: [
      'actors/contracts',
      'actors/runtime',
      'actors/session/state',
      'actors/session/unit',
      'actors/subagent',
      'language',
      'machines',
      'values',
    ],
    packages: ['zod'],
  },
  {
    files: 'actors/subagents/toolsets',
    sources: [
      'actors/contracts',
      'actors/model',
      'actors/notes',
      'actors/ports',
      'actors/subagent',
      'actors/subagents',
      'results',
      'values',
    ],
    packages: ['ai', 'rxjs', 'zod'],
  },
  // The tree of subagents.
  {
    files: 'actors/subagents',
    sources: [
      'actors/admission',
      'actors/context',
      'actors/contracts',
      'actors/conversation',
      'actors/model',
      'actors/notes',
      'actors/ports',
      'actors/runtime',
      'actors/subagent',
      'machines',
      'results',
      'values',
    ],
    packages: ['ai', 'rxjs', 'xstate', 'zod'],
  },
  {
    files: 'actors/session/lead',
    sources: [
      'actors/context',
      'actors/contracts',
      'actors/conversation',
      'actors/model',
      'actors/notes',
      'actors/ports',
      'actors/runtime',
      'actors/session/questions',
      'actors/session/state',
      'actors/session/unit',
      'actors/subagent',
      'actors/subagents',
      'machines',
      'values',
    ],
    packages: ['ai', 'rxjs', 'zod'],
  },
  {
    files: 'actors/services',
    sources: [
      'actors/contracts',
      'actors/ports',
      'actors/runtime',
      'actors/subagent',
      'machines',
      'values',
    ],
    packages: ['ai', 'xstate', 'zod'],
  },
  {
    files: 'actors/session/effects',
    sources: [
      'actors/contracts',
      'actors/conversation',
      'actors/model',
      'actors/notes',
      'actors/ports',
      'actors/runtime',
      'actors/services',
      'actors/session/lead',
      'actors/session/questions',
      'actors/session/state',
      'actors/session/unit',
      'actors/subagent',
      'actors/subagents',
      'machines',
      'values',
    ],
    packages: ['ai', 'croner', 'zod'],
  },
  {
    files: 'actors/session/lifecycle',
    sources: [
      'actors/admission',
      'actors/context',
      'actors/contracts',
      'actors/conversation',
      'actors/model',
      'actors/notes',
      'actors/ports',
      'actors/runtime',
      'actors/services',
      'actors/session/effects',
      'actors/session/lead',
      'actors/session/questions',
      'actors/session/state',
      'actors/session/unit',
      'actors/subagent',
      'actors/subagents',
      'machines',
      'memory',
      'results',
      'values',
    ],
    packages: ['ai', 'zod'],
  },
  {
    files: 'actors/session/view',
    sources: [
      'actors/admission',
      'actors/contracts',
      'actors/model',
      'actors/runtime',
      'actors/session/effects',
      'actors/session/lead',
      'actors/session/lifecycle',
      'actors/session/questions',
      'actors/session/state',
      'actors/subagent',
      'values',
    ],
    packages: ['ai', 'rxjs', 'xstate', 'zod'],
  },
  {
    files: 'actors/pool',
    sources: [
      'actors/admission',
      'actors/contracts',
      'actors/ports',
      'actors/replay',
      'actors/runtime',
      'actors/session/view',
      'values',
    ],
    packages: ['zod'],
  },
  {
    files: 'actors/replay',
    sources: [
      'actors/contracts',
      'actors/conversation',
      'actors/ports',
      'actors/runtime',
      'actors/services',
      'actors/session/lifecycle',
      'actors/session/questions',
      'actors/session/state',
      'actors/session/unit',
      'actors/subagent',
      'actors/subagents',
      'machines',
      'values',
    ],
    packages: ['zod'],
  },
  // Voice, room by room.
  {
    files: 'voice/audio',
    sources: ['values'],
    packages: ['rxjs'],
  },
  {
    files: 'voice/speech',
    sources: ['actors/runtime', 'values', 'voice/audio'],
    packages: [],
  },
  {
    files: 'voice/connection',
    sources: [
      'actors/notes',
      'actors/ports',
      'actors/runtime',
      'actors/session/lead',
      'machines',
      'values',
      'voice/audio',
      'voice/speech',
    ],
    packages: ['rxjs'],
  },
  {
    files: 'voice/output',
    sources: [
      'actors/contracts',
      'actors/conversation',
      'actors/notes',
      'actors/ports',
      'actors/session/lead',
      'actors/session/state',
      'language',
      'machines',
      'values',
      'voice/audio',
      'voice/connection',
      'voice/speech',
    ],
    packages: ['rxjs', 'zod'],
  },
  {
    files: 'voice/turns',
    sources: [
      'actors/contracts',
      'actors/conversation',
      'actors/model',
      'actors/notes',
      'actors/ports',
      'actors/runtime',
      'actors/session/lead',
      'actors/session/questions',
      'actors/session/state',
      'language',
      'machines',
      'values',
      'voice/audio',
      'voice/connection',
      'voice/output',
    ],
    packages: ['ai'],
  },
  {
    files: 'voice/voiced',
    sources: [
      'actors/notes',
      'actors/ports',
      'values',
      'voice/audio',
      'voice/connection',
      'voice/output',
      'voice/speech',
    ],
    packages: ['rxjs', 'zod'],
  },
  {
    files: 'voice',
    sources: [
      'actors/admission',
      'actors/contracts',
      'actors/conversation',
      'actors/model',
      'actors/notes',
      'actors/runtime',
      'actors/session/lead',
      'actors/session/lifecycle',
      'actors/session/questions',
      'actors/session/view',
      'machines',
      'values',
      'voice/audio',
      'voice/connection',
      'voice/output',
      'voice/speech',
      'voice/turns',
      'voice/voiced',
    ],
    packages: ['ai', 'rxjs', 'zod'],
  },
  {
    // The wire of the fake Realtime server is that of the local voice server, over sockets.
    files: 'testing/voice-server',
    sources: [
      'testing/conformance',
      'adapters/listen',
      'adapters/local-voice',
      'adapters/socket',
      'voice',
      'actors',
      'language',
      'results',
      'memory',
      'values',
    ],
    packages: [...declaredPackages, 'node:'],
  },
  // Recordings are files.
  {
    files: 'testing/recording',
    sources: ['actors', 'language', 'results', 'memory', 'values'],
    packages: ['node:'],
  },
  {
    files: 'testing',
    sources: [
      'client',
      'compat',
      'testing/recording',
      'voice-session.ts',
      'voice',
      'actors',
      'machines',
      'language',
      'results',
      'memory',
      'values',
    ],
    packages: runtimePackages,
  },
  {
    // The local voice calls the model itself.
    files: 'adapters/local-voice',
    sources: [
      ...portSources,
      'actors/model',
      'adapters/openai-realtime/official.ts',
      'adapters/openai-realtime/wire.ts',
    ],
    packages: [...declaredPackages, 'node:'],
  },

  {
    // Shared by the relays.
    files: 'adapters/relays',
    sources: ['values', 'actors/ports'],
    packages: [],
  },
  {
    files: 'adapters/a2a',
    sources: portSources,
    packages: [...declaredPackages, 'node:'],
  },
  {
    // The ACP adapter also serves sessions.
    files: 'adapters/acp',
    sources: [...portSources, 'actors/contracts', 'actors/session/lead', 'actors/session/view'],
    packages: [...declaredPackages, 'node:'],
  },
  {
    // The MCP adapter serves subagents.
    files: 'adapters/mcp',
    sources: [
      ...portSources,
      'actors/admission',
      'actors/contracts',
      'actors/model',
      'actors/subagent',
      'actors/subagents',
    ],
    packages: [...declaredPackages, 'node:'],
  },
  // The home of a session: it holds the session, knows its pool, and serves its clients.
  {
    files: 'adapters/cloudflare',
    sources: [
      ...portSources,
      'actors/admission',
      'actors/pool',
      'client/protocol.ts',
      'serve/connected-clients.ts',
      'serve/options.ts',
      'serve/served-client.ts',
      'serve/session-hub.ts',
    ],
    packages: ['zod'],
  },
  { files: 'adapters/*', sources: portSources, packages: [...declaredPackages, 'node:'] },
  // A session over the network. The client must be small enough for a page, so it imports only types from the other
  // rooms.
  {
    files: 'client',
    sources: ['actors/contracts', 'actors/ports', 'adapters/node', 'values'],
    packages: [],
  },
  // Components of a page, over the client.
  {
    files: 'react',
    sources: [
      'actors/contracts',
      'adapters/node/environment.ts',
      'client',
      'values/errors.ts',
      'values/visible.ts',
    ],
    packages: ['react'],
  },
  // The messages of the AI SDK UI, over the client; it needs only types from `ai`.
  {
    files: 'ai-sdk-ui',
    sources: [
      'actors/contracts',
      'actors/ports',
      'adapters/node/environment.ts',
      'client',
      'values/errors.ts',
      'values/plain-checks.ts',
    ],
    packages: ['ai'],
  },
  {
    files: 'serve',
    sources: [
      'actors/contracts',
      'actors/pool',
      'actors/ports',
      'actors/session/view',
      'adapters/listen',
      'adapters/node',
      'client/protocol.ts',
      'client/session-state.ts',
      'inspector',
      'values',
      'voice/audio',
      'voice-session.ts',
    ],
    packages: ['rxjs', 'ws', 'zod', 'node:'],
  },
  // Rules for the tasks of external agents.
  {
    files: 'tasks',
    sources: ['actors/ports', 'adapters/node', 'values'],
    packages: ['zod'],
  },
  // A page that shows the sessions in a journal.
  {
    files: 'inspector',
    sources: [
      'actors/contracts',
      'actors/ports',
      'actors/replay',
      'actors/session/view',
      'adapters/inspect/actor-registry.ts',
      'adapters/inspect/shown-value.ts',
      'adapters/listen',
      'adapters/node',
      'client/protocol.ts',
      'machines',
      'values',
    ],
    packages: ['xstate', 'zod', 'node:'],
  },
  // The command line is an app.
  {
    files: 'cli',
    sources: [
      'adapters',
      'client',
      'compat',
      'entries',
      'testing',
      'voice',
      'actors',
      'machines',
      'inspector',
      'language',
      'results',
      'memory',
      'values',
      'index.ts',
    ],
    packages: [...declaredPackages, 'node:'],
  },
  // The only place that selects real time for an app that passes no environment.
  {
    files: 'real-time.ts',
    sources: ['memory', 'values', 'actors', 'adapters/node'],
    packages: ['zod'],
  },
  // The session imports only types from the voice rooms; a transport loads the rest.
  {
    files: 'voice-session.ts',
    sources: [
      'real-time.ts',
      'actors/contracts',
      'actors/session/questions',
      'actors/session/view',
      'values',
      'voice',
    ],
    packages: ['rxjs'],
  },
  // The public names by theme. Functions that an app can call without an environment run in real time.
  {
    files: 'entries',
    sources: [
      'adapters/node',
      'actors',
      'language',
      'memory',
      'results',
      'machines',
      'real-time.ts',
      'values',
      'voice',
    ],
    packages: ['zod'],
  },
  // The APIs of the superseded systems, which the core never imports. RockBot's tools report how long a subagent
  // runs, in real time.
  {
    files: 'compat',
    sources: [
      'actors',
      'adapters/node/environment.ts',
      'language',
      'machines',
      'memory',
      'results',
      'tasks',
      'values',
      'voice',
    ],
    packages: runtimePackages,
  },
  {
    files: 'index.ts',
    sources: [
      'real-time.ts',
      'voice-session.ts',
      'voice',
      'actors',
      'machines',
      'language',
      'results',
      'memory',
      'values',
    ],
    packages: [],
  },
];
