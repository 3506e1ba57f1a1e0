// The public API, name by name. What talks to the outside world comes from the
// subpaths (`offstage/openai-realtime`, `offstage/local-voice`, …) and is handed in.

import { nodeEnvironment } from './adapters/node/environment.ts';
import {
  createRuntime as createRuntimeWith,
  type Runtime,
  type RuntimeOptions,
} from './actors/runtime/runtime.ts';
import {
  TextSession as CoreTextSession,
  type TextSessionOptions as CoreTextSessionOptions,
} from './actors/session/text-session.ts';
import {
  VoiceSession as CoreVoiceSession,
  type VoiceSessionOptions as CoreVoiceSessionOptions,
} from './voice/voice-session.ts';

// Sessions

/** What a session may be given instead of a runtime of its own making. */
type RuntimeChoice = {
  /** Shared with other sessions: `createRuntime(…)`. */
  readonly runtime?: Runtime;
} & Partial<RuntimeOptions>;

export type TextSessionOptions = Omit<CoreTextSessionOptions, 'runtime'> & RuntimeChoice;
export type VoiceSessionOptions = Omit<CoreVoiceSessionOptions, 'runtime'> & RuntimeChoice;

/**
 * A runtime in real time, with a journal in memory, unless told otherwise.
 * Sessions that shall share limits and a journal are given the same one.
 */
export function createRuntime(options: Partial<RuntimeOptions> = {}): Runtime {
  return createRuntimeWith({ environment: nodeEnvironment(), ...options });
}

let processRuntime: Runtime | undefined;

function chosenRuntime(options: RuntimeChoice): Runtime {
  const { runtime, environment, journal, maxTotalActive, inspect } = options;
  if (runtime) return runtime;
  // Sessions that ask for nothing special share one, and so the limit of the process.
  if (!environment && !journal && maxTotalActive === undefined && !inspect)
    return (processRuntime ??= createRuntime());
  return createRuntime({
    ...(environment ? { environment } : {}),
    ...(journal ? { journal } : {}),
    ...(maxTotalActive === undefined ? {} : { maxTotalActive }),
    ...(inspect ? { inspect } : {}),
  });
}

/** A conversation in text. */
export class TextSession extends CoreTextSession {
  /** @throws {ConfigurationError} for options that cannot work. */
  constructor(options: TextSessionOptions) {
    super({ ...options, runtime: chosenRuntime(options) });
  }
}

/** A conversation by voice. */
export class VoiceSession extends CoreVoiceSession {
  /** @throws {ConfigurationError} for options that cannot work. */
  constructor(options: VoiceSessionOptions) {
    super({ ...options, runtime: chosenRuntime(options) });
  }
}

export type { Runtime, RuntimeOptions } from './actors/runtime/runtime.ts';
export type { TextPart } from './actors/session/text-output.ts';
export type { SessionSubagents } from './actors/session/session-face.ts';
export type { SessionHooks } from './actors/session/hooks.ts';
export type { SessionLimits } from './actors/supervisor/limits.ts';
export type { PlayoutReport, VoiceOptions } from './voice/voice-session.ts';

// Agents, tools, subagents

export {
  defineTool,
  type MainAgent,
  type ToolContext,
  type ToolDefinition,
} from './actors/session/lead-tools.ts';
export {
  defineSubagent,
  type RetryOptions,
  type SubagentConfig,
} from './actors/subagent/config.ts';
export type { LedgerEntry, Outcome, Usage } from './actors/subagent/outcome.ts';
export type { SubagentTask } from './actors/subagent/subagent.ts';

// What a session shows

export type {
  AnswerReceipt,
  ConnectionState,
  DeliveryView,
  QuestionOption,
  QuestionView,
  SessionEvent,
  SessionState,
  SubagentState,
  SubagentView,
  TranscriptItem,
} from './actors/session-views.ts';

// Ports, and what is built in for them

export type { Clock, Environment, Ids, Random, Scheduler } from './actors/ports/environment.ts';
export type { Journal, JournalEntry } from './actors/ports/journal.ts';
export type { FactQuery, MemoryFact, MemoryStore } from './actors/ports/memory-store.ts';
export { memoryStore } from './actors/context/memory-store.ts';
export { memoryJournal, type MemoryJournalOptions } from './actors/runtime/memory-journal.ts';
export type { AudioFrame } from './voice/audio-frame.ts';
export type { Transport } from './voice/transport.ts';

// Errors

export {
  CancelledError,
  CapacityError,
  ConfigurationError,
  OffstageError,
  ProtocolError,
  ProviderError,
} from './errors.ts';
