// The adapters' requirements, the facts about a machine, and the pure function `examine`, which compares the two.
//
// FINDINGS-1. No finding contains any part of a key's value.

import { fileURLToPath } from 'node:url';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ConfigurationError } from '../../values/errors.ts';
import {
  checkOptions,
  objectWith,
  shown,
  type OptionCheck,
  type OptionChecks,
} from '../../values/plain-checks.ts';
import { INSTALL_VOICE, voiceFolder } from '../../adapters/local-voice/speech/voice-packages.ts';

/** The facts about a machine that the doctor checks. */
export interface Machine {
  /** The Node.js version. */
  readonly nodeVersion: string;
  /** The environment variables. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Returns an installed package's version, or null. */
  installed(packageName: string): string | null;
  /** Returns the range of versions that Offstage supports, such as `^7.0.0`; null for any. */
  range(packageName: string): string | null;
  /** The folder with the packages of the local voice, or null if they are not installed. */
  voiceFolder(): string | null;
}

/** A finding of the doctor: a requirement that is met, a note, or a requirement that is missing. */
export interface Finding {
  /** `ok`, `note` for a remark, or `missing` for something that the adapter needs. */
  readonly status: 'ok' | 'note' | 'missing';
  /** The text of the finding. */
  readonly text: string;
}

/** One group of findings: the machine, or an adapter. */
export interface Section {
  /** The group's name. */
  readonly name: string;
  /** The group's findings. */
  readonly findings: readonly Finding[];
  /** True if no finding in the group is `missing`. */
  readonly isReady: boolean;
}

const MIN_NODE = [22, 13] as const;

/**
 * Examines the machine and each of these adapters. Needs no network and opens no connection.
 * @param machine `thisMachine()`, or facts about another machine.
 * @param names the names of voices and adapters, such as `'openai-realtime'`. The first section is always the machine.
 * @throws {ConfigurationError} `INVALID_OPTION`: the machine's facts are incomplete, or there is no such adapter.
 */
export function examine(machine: Machine, names: readonly string[]): readonly Section[] {
  checkOptions('examine(machine, names)', machineChecks, machine);
  const known = REQUIREMENTS.map(({ name }) => name);
  const isList = Array.isArray(names);
  const unknown = isList ? names.find((name) => !known.includes(name)) : names;
  if (!isList || unknown !== undefined)
    throw new ConfigurationError(
      'INVALID_OPTION',
      `examine(machine, names): expected names in a list, of ${known.join(', ')}, got ${shown(unknown)}`,
    );
  return [
    section('this machine', [
      nodeFinding(machine.nodeVersion),
      ...ALWAYS.map((name) => packageFinding(machine, name)),
    ]),
    ...REQUIREMENTS.filter(({ name }) => names.includes(name)).map((needed) =>
      section(needed.name, [
        ...keyFindings(machine, needed),
        ...needed.variables.flatMap((variable) => variableFinding(machine, variable)),
        ...needed.packages.map((name) => packageFinding(machine, name)),
        ...(needed.notes ?? []).map((text): Finding => ({ status: 'note', text })),
        ...(needed.name === 'local-voice' ? [voiceFinding(machine.voiceFolder())] : []),
      ]),
    ),
  ];
}

const aFunction: OptionCheck = (value) =>
  typeof value === 'function' ? null : 'expected a function';
const machineChecks: OptionChecks<Machine> = {
  nodeVersion: (value) => (typeof value === 'string' ? null : 'expected a version'),
  variables: objectWith('an object with environment variables'),
  installed: aFunction,
  range: aFunction,
  voiceFolder: aFunction,
};

function section(name: string, findings: readonly Finding[]): Section {
  return { name, findings, isReady: findings.every(({ status }) => status !== 'missing') };
}

function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isNew = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
  return isNew
    ? { status: 'ok', text: `Node ${version}` }
    : {
        status: 'missing',
        text: `Node ${MIN_NODE.join('.')} or newer is needed, this is ${version}`,
      };
}

function packageFinding(machine: Machine, name: string): Finding {
  const version = machine.installed(name);
  if (version === null)
    return { status: 'missing', text: `The package ${name} is missing: run npm install ${name}` };
  const range = machine.range(name);
  if (range !== null && !isInCaretRange(version, range)) {
    const text = `${name} ${version} is installed, ${range} is needed: run npm install ${name}@${range}`;
    return { status: 'missing', text };
  }
  return { status: 'ok', text: `${name} ${version}` };
}

function voiceFinding(folder: string | null): Finding {
  return folder === null
    ? {
        status: 'missing',
        text: `The packages of the local voice are missing: run ${INSTALL_VOICE}`,
      }
    : { status: 'ok', text: `The packages of the local voice are in ${folder}` };
}

/** The first key that is set is used. The findings name the other keys, because the user may not expect this choice. */
function keyFindings({ variables }: Machine, { keys }: Requirements): readonly Finding[] {
  if (keys.length === 0) return [{ status: 'ok', text: 'Reads no key' }];
  const set = keys.filter((name) => (variables[name] ?? '') !== '');
  const [used, ...others] = set;
  if (used === undefined) return [{ status: 'missing', text: `No key: set ${keys.join(', or ')}` }];
  return [
    { status: 'ok', text: `The key is taken from ${used}` },
    ...malformedKey(used, variables[used] ?? ''),
    ...others.map((name): Finding => ({
      status: 'note',
      text: `${name} is set too, and not used`,
    })),
  ];
}

/** Detects the common ways in which a shell or an .env file damages a key. */
function malformedKey(name: string, value: string): readonly Finding[] {
  const problem =
    value !== value.trim()
      ? 'begins or ends with white space'
      : /\s/.test(value)
        ? 'has white space in it'
        : /^(['"]).*\1$/s.test(value)
          ? 'is in quotation marks that are part of it'
          : /^(?:<.*>|your[-_ ].*|x{3,}|\.{3,}|change[-_ ]?me)$/i.test(value)
            ? 'looks like a placeholder'
            : null;
  return problem === null ? [] : [{ status: 'missing', text: `The key in ${name} ${problem}` }];
}

function variableFinding(
  { variables }: Machine,
  { name, what }: { readonly name: string; readonly what: string },
): readonly Finding[] {
  const value = variables[name];
  if (value === undefined || value === '') return [];
  if (!URL.canParse(value))
    return [{ status: 'missing', text: `${name} is set (${what}), but is no address` }];
  // Only the host: a URL may contain a user name and a password, or a key in its query.
  return [{ status: 'note', text: `${name} is set: ${what}, at ${new URL(value).host}` }];
}

/** Returns whether a version is in the range `^a.b.c`. Pre-releases of the next version are not in the range. */
export function isInCaretRange(version: string, range: string): boolean {
  const wanted = numbersOf(range.replace(/^\^/, ''));
  const found = numbersOf(version);
  // Within the range, the numbers after the first non-zero one may change.
  const fixed = Math.max(1, wanted.findIndex((number) => number !== 0) + 1);
  for (let index = 0; index < 3; index += 1) {
    const difference = (found[index] ?? 0) - (wanted[index] ?? 0);
    if (difference !== 0) return difference > 0 && index >= fixed;
  }
  return true;
}

function numbersOf(version: string): readonly number[] {
  return version.split(/[-+]/, 1).flatMap((core) => core.split('.').map(Number));
}

/** The requirements of an adapter. */
interface Requirements {
  /** The name of the subpath: `offstage/<name>`. */
  readonly name: string;
  /** The environment variables for the key. The first one that is set is used. Empty if the adapter needs no key. */
  readonly keys: readonly string[];
  /** The other environment variables that the adapter reads, and what they are for. */
  readonly variables: readonly { readonly name: string; readonly what: string }[];
  /** Packages that the adapter needs in addition to `ALWAYS`. */
  readonly packages: readonly string[];
  /** Requirements that cannot be checked on the machine. */
  readonly notes?: readonly string[];
}

/** Packages that every app needs. */
const ALWAYS: readonly string[] = ['ai', 'zod'];

const openaiBaseUrl = { name: 'OPENAI_BASE_URL', what: 'another address than that of OpenAI' };

const noKeyNorVariable = { keys: [], variables: [] } as const;

/**
 * The requirements of all adapters. A test compares this table with the package's subpaths and with the errors that the
 * adapters throw when something is missing.
 */
export const REQUIREMENTS: readonly Requirements[] = [
  {
    name: 'openai-realtime',
    keys: ['OPENAI_API_KEY'],
    variables: [openaiBaseUrl],
    packages: ['ws'],
  },
  {
    name: 'openai-live',
    keys: ['OPENAI_API_KEY'],
    variables: [openaiBaseUrl],
    packages: ['ws'],
  },
  {
    name: 'gemini-live',
    keys: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GOOGLE_API_KEY', 'GEMINI_API_KEY'],
    variables: [{ name: 'GOOGLE_GEMINI_BASE_URL', what: 'another address than that of Google' }],
    packages: ['ws'],
  },
  { name: 'local-voice', ...noKeyNorVariable, packages: ['ws'] },
  {
    name: 'email',
    ...noKeyNorVariable,
    packages: [],
    notes: ['Needs a transport of nodemailer, or another function that sends a mail'],
  },
  {
    name: 'sms',
    ...noKeyNorVariable,
    packages: [],
    notes: ['Needs a client of the package twilio, which the app passes to it'],
  },
  {
    name: 'slack',
    ...noKeyNorVariable,
    packages: [],
    notes: ['Needs a client of the package @slack/web-api, which the app passes to it'],
  },
  {
    name: 'web-push',
    ...noKeyNorVariable,
    packages: [],
    notes: ['Needs the package web-push and VAPID keys, which the app passes to it'],
  },
  {
    name: 'ai-sdk-speech',
    ...noKeyNorVariable,
    packages: [],
    notes: ['Needs a provider of the AI SDK that transcribes and speaks, with its own key'],
  },
  {
    name: 'twilio',
    ...noKeyNorVariable,
    packages: ['ws'],
    notes: ['Needs the account and the auth token of Twilio, which the app passes to it'],
  },
  { name: 'sqlite-journal', ...noKeyNorVariable, packages: [] },
  {
    name: 'postgres-journal',
    ...noKeyNorVariable,
    packages: ['pg'],
    notes: ['Needs a PostgreSQL server, version 12 or newer'],
  },
  {
    name: 'encrypted-journal',
    ...noKeyNorVariable,
    packages: [],
    notes: ['Needs a key of the app: a file that is encrypted is unreadable without it'],
  },
  {
    name: 'otel',
    ...noKeyNorVariable,
    packages: ['@opentelemetry/api'],
    notes: ['Needs an OpenTelemetry SDK with an exporter, which the app registers'],
  },
  { name: 'memory-file', ...noKeyNorVariable, packages: [] },
  {
    name: 'restate',
    ...noKeyNorVariable,
    packages: ['@restatedev/restate-sdk'],
    notes: ['Needs a Restate server'],
  },
  {
    name: 'temporal',
    ...noKeyNorVariable,
    packages: [
      '@temporalio/client',
      '@temporalio/worker',
      '@temporalio/activity',
      '@temporalio/workflow',
    ],
    notes: ['Needs a Temporal server'],
  },
  {
    name: 'cloudflare',
    ...noKeyNorVariable,
    packages: ['wrangler'],
    notes: ['Runs in a Durable Object with SQLite storage'],
  },
  {
    name: 'a2a',
    ...noKeyNorVariable,
    packages: ['@a2a-js/sdk'],
    notes: ['Needs the address of an agent that speaks A2A'],
  },
  {
    name: 'claude',
    ...noKeyNorVariable,
    packages: ['@anthropic-ai/claude-agent-sdk'],
    notes: ['Needs a key of Anthropic for Claude Code, or its login'],
  },
  {
    name: 'acp',
    ...noKeyNorVariable,
    packages: ['@agentclientprotocol/sdk'],
    notes: ['Needs the program of an agent that speaks ACP'],
  },
  {
    name: 'mcp',
    ...noKeyNorVariable,
    packages: ['@modelcontextprotocol/sdk'],
    notes: ['Serves subagents to clients of the Model Context Protocol'],
  },
  {
    name: 'webhook',
    ...noKeyNorVariable,
    packages: [],
    notes: ['Needs an address that the other system reaches'],
  },
  { name: 'inspect', ...noKeyNorVariable, packages: ['ws', '@statelyai/inspect'] },
  { name: 'node', ...noKeyNorVariable, packages: [] },
];

interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** Returns the version of this package, or `unknown` if no manifest is found above the file. */
export function ownVersion(): string {
  return manifestAbove(fileURLToPath(import.meta.url), 'offstage')?.version ?? 'unknown';
}

/** Reads the facts about this machine. */
export function thisMachine(): Machine {
  const { peerDependencies = {} } = manifestAbove(fileURLToPath(import.meta.url), 'offstage') ?? {};
  return {
    nodeVersion: process.versions.node,
    variables: process.env,
    range: (name) => peerDependencies[name] ?? null,
    voiceFolder: () => (existsSync(voiceFolder()) ? voiceFolder() : null),
    installed(name) {
      let entry: string;
      try {
        // Resolves the package as Offstage itself does.
        entry = fileURLToPath(import.meta.resolve(name));
      } catch {
        return null;
      }
      return manifestAbove(entry, name)?.version ?? null;
    },
  };
}

/** Finds the manifest of the package that a file belongs to. Packages rarely export their manifest. */
function manifestAbove(file: string, packageName: string): Manifest | null {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
      if (manifest.name === packageName) return manifest;
    } catch {
      // This folder has no manifest, so look in the parent folder.
    }
  }
  return null;
}
