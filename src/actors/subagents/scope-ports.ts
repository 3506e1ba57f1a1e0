// The interface of the session or program for which a scope's subagents work.

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

/** One subagent's news to its scope. */
type Seen = { readonly view: SubagentView } & (
  | Own<'changed' | 'stepped' | 'call.in_doubt'>
  | { readonly type: 'progressed'; readonly note: ProgressNote }
  /** A request, which the lead agent or the program answers with `send`. */
  | { readonly type: 'input.requested'; readonly request: PendingInput }
  /** A subagent's last news, except `delivered`. */
  | (Own<'ended'> & {
      /** Whether a wait has already delivered the result. */
      readonly isDelivered: boolean;
      /** The user's words that led to the subagent; null if the user did not request the work. */
      readonly request: string | null;
    })
);

/** The subagents' news to their scope. */
export type ScopeNews =
  | Seen
  | Own<'question.asked' | 'question.withdrawn' | 'lacks'>
  /** A request from `input.requested` has been settled, with or without an answer. */
  | { readonly type: 'input.settled'; readonly requestId: string }
  /** The lead agent, or the program, starts to wait for a subagent, or a wait ends. */
  | { readonly type: 'wait.began' | 'wait.ended' }
  /** The result has reached its recipient, possibly before `ended`. `parentId` is null if the program is the recipient. */
  | { readonly type: 'delivered'; readonly id: string; readonly parentId: string | null };

/** A scope's rules, where they differ from a session's. */
export interface ScopeTerms {
  /** Whether another process can continue the subagents. @defaultValue true */
  readonly isRecoverable?: boolean;
  /** Whether the process that continues keeps the open questions, so that they are not asked again. @defaultValue true */
  readonly keepsQuestions?: boolean;
  /** Whether a handler answers `input.requested`, so that requests end no wait. @defaultValue false */
  readonly handlesInput?: boolean;
  /** Whether all steps run as jobs, whatever the configurations say. @defaultValue false */
  readonly stepsAreJobs?: boolean;
  /** Keys of the calls that the user denied above the scope's subagents. @defaultValue none */
  readonly denied?: ReadonlySet<string>;
  /**
   * Returns the stand-in for a configuration whose subagents run elsewhere. Not called for a subagent with granted or
   * denied tools, or with a budget. @defaultValue the configuration itself
   */
  standIn?(config: SubagentConfig): SubagentConfig;
}

/** The agent that assigns tasks: the lead agent, or a program. */
export interface Giver {
  /** The current lead agent's name; null for a program. */
  readonly agentName: string | null;
  /** Writes the notes to the lead agent, and those in a conversation that a subagent continues. */
  readonly notes?: NoteMarks;
  /** The model for subagents without a model. */
  readonly model: LanguageModel | undefined;
  /** Returns the tools that may be granted. `agentName`: the agent whose tools they are, even if another agent leads now. */
  tools(agentName?: string | null): Readonly<Record<string, unknown>>;
}

/** The functions of a session or program that its subagents need. Only `brief` may throw, which fails the run. */
export interface ScopePorts {
  /** The name of these ports, unique in the scope and the same in every process. */
  readonly name: string;
  readonly host: Host;
  readonly terms: ScopeTerms;
  readonly giver: Giver;
  /** Processes outputs and outcomes; if absent, they stay unchanged. */
  readonly outcomes?: OutcomeProcessor;
  /**
   * Returns the origin of a lead agent's call: the user's words (null if there are none) and the user's identity (null
   * if unknown). Absent without a lead agent.
   */
  originOf?(callId: string): { readonly request: string | null; readonly requester: string | null };
  /** The approvals that last. @defaultValue none */
  readonly lasting?: readonly AnsweredQuestion[];
  /**
   * Builds a run's prompts. `messages`: the conversation that the run continues. `notes` writes the messages; null if
   * an earlier version started the run, whose messages are in the journal.
   */
  brief(
    definition: SubagentDefinition,
    task: SubagentTask,
    messages: SpawnRequest['messages'],
    notes: NoteMarks | null,
  ): Briefing | Promise<Briefing>;
  /** Returns the configuration of a subagent that was spawned before a crash, by its tool and its name. */
  configOf?(toolName: string, name: string): SubagentConfig | undefined;
  /**
   * Returns, after a crash, whether the end of a subagent was reported, whether its delivery is still pending (default:
   * false), and its outcome if that is stored.
   */
  endOf(
    id: string,
    callId: string | null,
  ): { readonly isKnown: boolean; readonly isPending?: boolean; readonly outcome: Outcome | null };
  tell(news: ScopeNews): void;
}
