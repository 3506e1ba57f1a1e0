// The interface of the session or program that a scope's subagents work for.

import type { LanguageModel } from 'ai';
import type { SubagentView } from '../contracts/session-views.ts';
import type { NoteMarks } from '../notes/note-marks.ts';
import type { Host } from '../runtime/host.ts';
import type { SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import type { Briefing } from '../subagent/instance.ts';
import type { AnsweredQuestion } from '../contracts/records.ts';
import type { SubagentNews } from '../subagent/subagent-ports.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { OutcomeProcessor } from '../../results/outcome-processor.ts';
import type { PendingInput, ProgressNote, SpawnRequest } from '../contracts/service-types.ts';
import type { SubagentTask } from '../contracts/task.ts';

type Own<Type extends SubagentNews['type']> = Extract<SubagentNews, { readonly type: Type }>;

/** The notifications that a subagent sends to its scope. */
type Seen = { readonly view: SubagentView } & (
  | Own<'changed' | 'stepped' | 'call.in_doubt'>
  | { readonly type: 'progressed'; readonly note: ProgressNote }
  /** A request, which the lead agent or the program answers by calling `send`. */
  | { readonly type: 'input.requested'; readonly request: PendingInput }
  /** The last notification from a subagent, except for `delivered`. */
  | (Own<'ended'> & {
      /** Whether a wait has already delivered the result. */
      readonly isDelivered: boolean;
      /** The utterance that led to the subagent, or null if the user did not request the work. */
      readonly request: string | null;
    })
);

/** The notifications that the subagents of a scope send to it. */
export type ScopeNews =
  | Seen
  | Own<'question.asked' | 'question.withdrawn' | 'lacks'>
  /** The request from `input.requested` has been settled, with or without an answer. */
  | { readonly type: 'input.settled'; readonly requestId: string }
  /** The lead agent or the program starts to wait for a subagent, or such a wait ends. */
  | { readonly type: 'wait.began' | 'wait.ended' }
  /**
   * The result has reached its recipient, which may happen before `ended`. `parentId` is null if the program is the
   * recipient.
   */
  | { readonly type: 'delivered'; readonly id: string; readonly parentId: string | null };

/** The rules in which a scope may differ from a session. */
export interface ScopeTerms {
  /** Whether another process can continue the subagents. @defaultValue true */
  readonly isRecoverable?: boolean;
  /** Whether the next process still has the open questions, so that it does not ask them again. @defaultValue true */
  readonly keepsQuestions?: boolean;
  /** Whether a handler answers `input.requested`. If so, requests do not end a wait. @defaultValue false */
  readonly handlesInput?: boolean;
  /** Whether all steps run as jobs, even if their configurations do not say so. @defaultValue false */
  readonly stepsAreJobs?: boolean;
  /** Keys of the calls that the user denied above this scope. @defaultValue none */
  readonly denied?: ReadonlySet<string>;
  /**
   * Returns a stand-in for a configuration whose subagents run elsewhere. Not called for a subagent with granted or
   * denied tools, or with a budget. @defaultValue the configuration itself
   */
  standIn?(config: SubagentConfig): SubagentConfig;
}

/** The agent that assigns tasks: the lead agent or a program. */
export interface Giver {
  /** The name of the current lead agent, or null for a program. */
  readonly agentName: string | null;
  /** Writes the notes to the lead agent, and the notes in conversations that subagents continue. */
  readonly notes?: NoteMarks;
  /** The model for subagents that do not specify one. */
  readonly model: LanguageModel | undefined;
  /**
   * Returns the tools that may be granted to subagents. `agentName`: the agent whose tools these are, even if another
   * agent leads now.
   */
  tools(agentName?: string | null): Readonly<Record<string, unknown>>;
}

/**
 * The functions of a session or program that its subagents need. Only `brief` may throw. The run then fails.
 */
export interface ScopePorts {
  /** The name of these ports, unique in the scope and the same in every process. */
  readonly name: string;
  readonly host: Host;
  readonly terms: ScopeTerms;
  readonly giver: Giver;
  /** Processes outputs and outcomes. If absent, outputs and outcomes are not changed. */
  readonly outcomes?: OutcomeProcessor;
  /**
   * Returns the origin of a lead agent's call: the utterance that caused it (null if there is none) and the user's
   * identity (null if unknown). Absent if there is no lead agent.
   */
  originOf?(callId: string): { readonly request: string | null; readonly requester: string | null };
  /** The approvals that remain in effect. @defaultValue none */
  readonly lasting?: readonly AnsweredQuestion[];
  /**
   * Builds the prompts of a run. `messages`: the conversation that the run continues. `notes` formats the messages.
   * Null if an earlier version started the run, because the journal then contains the messages.
   */
  brief(
    definition: SubagentDefinition,
    task: SubagentTask,
    messages: SpawnRequest['messages'],
    notes: NoteMarks | null,
  ): Briefing | Promise<Briefing>;
  /** Returns the configuration of a subagent that was spawned before a crash, according to its tool and its name. */
  configOf?(toolName: string, name: string): SubagentConfig | undefined;
  /**
   * After a crash, returns whether a subagent's end was reported, whether its delivery is still pending (default:
   * false), and its outcome if that is stored.
   */
  endOf(
    id: string,
    callId: string | null,
  ): { readonly isKnown: boolean; readonly isPending?: boolean; readonly outcome: Outcome | null };
  tell(news: ScopeNews): void;
}
