// The interface of the session or program that the subagents of a scope work for.

import type { LanguageModel } from 'ai';
import type { SubagentView } from '../contracts/session-views.ts';
import type { NoteMarks } from '../notes/note-marks.ts';
import type { Host } from '../runtime/host.ts';
import type { SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import type { Briefing } from '../subagent/instance.ts';
import type { SubagentNews } from '../subagent/subagent-ports.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { OutcomeProcessor } from '../../results/outcome-processor.ts';
import type { PendingInput, ProgressNote, SpawnRequest } from '../contracts/service-types.ts';
import type { SubagentTask } from '../contracts/task.ts';

type Own<Type extends SubagentNews['type']> = Extract<SubagentNews, { readonly type: Type }>;

/** What the scope learns of one of its subagents. */
type Seen = { readonly view: SubagentView } & (
  | Own<'changed' | 'stepped' | 'call.in_doubt'>
  | { readonly type: 'progressed'; readonly note: ProgressNote }
  /** The lead agent or the program answers it with `send`. */
  | { readonly type: 'input.requested'; readonly request: PendingInput }
  /** The last news but `delivered`. */
  | (Own<'ended'> & {
      /** True if the result was delivered to a wait already. */
      readonly isDelivered: boolean;
      /** The words of the user that led to it; null: no user asked. */
      readonly request: string | null;
    })
);

/** What the subagents of a scope tell it. */
export type ScopeNews =
  | Seen
  | Own<'question.asked' | 'question.withdrawn' | 'lacks'>
  /** A request of `input.requested` is over, however it ended. */
  | { readonly type: 'input.settled'; readonly requestId: string }
  /** The lead agent, or the program, begins to wait for a subagent, or a wait is over. */
  | { readonly type: 'wait.began' | 'wait.ended' }
  /** The result has reached its addressee, also before `ended`. `parentId` null: the program. */
  | { readonly type: 'delivered'; readonly id: string; readonly parentId: string | null };

/** The rules of a scope, where they are not those of a session. */
export interface ScopeTerms {
  /** Whether another process can continue its subagents. @defaultValue true */
  readonly isRecoverable?: boolean;
  /** True if the process that continues has the open questions: they are not asked again. @defaultValue true */
  readonly keepsQuestions?: boolean;
  /** True if `input.requested` finds an answer by itself: its requests end no wait. @defaultValue false */
  readonly handlesInput?: boolean;
  /** Subagents do their steps as jobs here, whatever their configurations say. @defaultValue false */
  readonly stepsAreJobs?: boolean;
  /** Keys of the calls that the user denied above the subagents of this scope. @defaultValue none */
  readonly denied?: ReadonlySet<string>;
  /**
   * Returns the configuration that stands in here for one whose subagents work elsewhere. Not asked for a subagent whose
   * tools are granted or denied, or that a budget is above. @defaultValue the same
   */
  standIn?(config: SubagentConfig): SubagentConfig;
}

/** Who gives the work: the lead agent, or a program. */
export interface Giver {
  /** The current lead agent; null: a program. */
  readonly agentName: string | null;
  /** Writes the notes to the lead agent, and so those in a conversation that is passed on. */
  readonly notes?: NoteMarks;
  /** The model of subagents without a model of their own. */
  readonly model: LanguageModel | undefined;
  /** Its tools, out of which a grant is made. `agentName`: those of this agent, whichever leads now. */
  tools(agentName?: string | null): Readonly<Record<string, unknown>>;
}

/** No method may throw but `brief`, whose rejection fails the run. */
export interface ScopePorts {
  /** Identifies it among the ports of the same scope, in this process and the next. */
  readonly name: string;
  readonly host: Host;
  readonly terms: ScopeTerms;
  readonly giver: Giver;
  /** Processes outputs and outcomes; absent: they stay as they are. */
  readonly outcomes?: OutcomeProcessor;
  /**
   * Returns what led to this call of the lead agent: the words of the user (null: no user asked), and the user (null: no
   * particular one). Absent: there is no lead agent.
   */
  originOf?(callId: string): { readonly request: string | null; readonly requester: string | null };
  /**
   * Builds the prompts of a run. `messages`: the conversation that it continues. `notes` writes the messages;
   * null: an earlier version began the run, and its messages are in the journal.
   */
  brief(
    definition: SubagentDefinition,
    task: SubagentTask,
    messages: SpawnRequest['messages'],
    notes: NoteMarks | null,
  ): Briefing | Promise<Briefing>;
  /**
   * Returns the configuration of a subagent that was spawned before a crash, by its tool and its own name.
   */
  configOf?(toolName: string, name: string): SubagentConfig | undefined;
  /** Tells, after a crash, whether the end of a subagent was reported, with its outcome where that is kept. */
  endOf(
    id: string,
    callId: string | null,
  ): { readonly isKnown: boolean; readonly outcome: Outcome | null };
  tell(news: ScopeNews): void;
}
