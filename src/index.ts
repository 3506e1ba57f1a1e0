// The public API, name by name. An app imports adapters to external systems from the subpaths
// (`offstage/openai-realtime`, `offstage/local-voice`, …) and passes them in.

import {
  TextSession as CoreTextSession,
  type TextSessionOptions as CoreTextSessionOptions,
} from './actors/session/view/text-session.ts';
import { withRuntime, type RuntimeChoice } from './real-time.ts';

// Sessions

/** The options of a `TextSession`, which creates its own real-time runtime unless the app passes one. */
export type TextSessionOptions = Omit<CoreTextSessionOptions, 'runtime'> & RuntimeChoice;

/** A conversation in text. */
export class TextSession extends CoreTextSession {
  /** @throws {ConfigurationError} if two options cannot be combined. */
  constructor(options: TextSessionOptions) {
    super(withRuntime('new TextSession(options)', options));
  }
}

export { createRuntime } from './real-time.ts';
export { VoiceSession, withVoice, type VoiceSessionOptions } from './voice-session.ts';
export { sessionLogic } from './actors/session/view/session-logic.ts';
export type { Runtime, RuntimeOptions } from './actors/admission/runtime.ts';
export type { SessionHooks } from './actors/session/lead/hooks.ts';
export type { ConsolidationOptions } from './actors/session/state/batches.ts';

// The arguments and results of a session's methods

export type { TextPart } from './actors/session/lead/text-output.ts';
export type { SessionResult } from './actors/session/lead/awaited.ts';
export type { GivenAnswer } from './actors/subagent/ask-user.ts';
export type { SessionSubagents } from './actors/session/view/base-session.ts';

// Lead agents and their tools

export type { AgentContext, LeadAgent } from './actors/session/lead/lead-agent.ts';
export { defineTool } from './actors/session/lead/lead-tools.ts';
export type { ToolContext, ToolDefinition } from './actors/contracts/lead-tool.ts';
export type { DeliveryMode, MessageMode } from './machines/index.ts';

// Subagents

export { defineSubagent } from './actors/subagent/define-subagent.ts';
export type { BudgetLimits, PreApproval, SubagentConfig } from './actors/contracts/config.ts';
export type { SubagentTask } from './actors/contracts/task.ts';
export type { Artifact, LedgerEntry, Outcome } from './actors/contracts/outcome.ts';
export type { Price, Usage, UsageView } from './actors/contracts/usage.ts';

// Parents and children, agents that call agents

export { createParentSubagentToolset } from './actors/subagents/toolsets/parent-toolset.ts';
export { createChildSubagentToolset } from './actors/subagent/child-toolset.ts';
export { createSubAgentTool } from './actors/subagents/toolsets/sub-agent-tool.ts';
export { callerOf, type Caller } from './actors/model/caller.ts';

// Services: agents that examine external events

export { defineService, type ServiceSubagentConfig } from './actors/services/service-config.ts';

// Views of a session

export type {
  AnswerReceipt,
  ConnectionState,
  DeliveryView,
  DoubtfulCall,
  LimitView,
  QuestionOption,
  QuestionView,
  SessionEvent,
  SessionState,
  SubagentState,
  SubagentView,
  TranscriptItem,
} from './actors/contracts/session-views.ts';

// Ports

export type { Environment } from './actors/ports/environment.ts';
export type { Journal } from './actors/ports/journal.ts';
export type { ReachChannel } from './actors/ports/reach-channel.ts';
export { memoryJournal } from './actors/runtime/memory-journal.ts';
export type { AudioFrame } from './voice/audio/audio-frame.ts';
export type { Transport } from './voice/connection/transport.ts';

// Errors

export {
  CancelledError,
  CapacityError,
  ConfigurationError,
  OffstageError,
  ProtocolError,
  ProviderError,
  TimeoutError,
} from './values/errors.ts';
