// The interface of the session or program that the subagents of a scope work for.

import type { LanguageModel } from 'ai';
import type { SubagentView } from '../contracts/session-views.ts';
import type { AskedQuestion } from '../contracts/records.ts';
import type { NoteMarks } from '../notes/note-marks.ts';
import type { Host } from '../runtime/host.ts';
import type { SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import type { Briefing } from '../subagent/instance.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { OutcomeProcessor } from '../../results/outcome-processor.ts';
import type { PendingInput, ProgressNote, SpawnRequest } from '../contracts/service-types.ts';
import type { CallInDoubt, StepReport, SubagentTask } from '../contracts/task.ts';

/** No method may throw but `brief`, whose rejection fails the run. */
export interface ScopePorts {
  /** Identifies it among the ports of the same scope, in this process and the next. */
  readonly name: string;
  /** Tells whether another process can continue its subagents. @defaultValue true */
  readonly goesOn?: boolean;
  readonly host: Host;
  /** Processes outputs and outcomes; absent: they stay as they are. */
  readonly outcomes?: OutcomeProcessor;
  /** Returns the words of the user that led to this call of the lead agent; null: no user asked. */
  requestOf?(callId: string): string | null;
  /** Returns the user who said them; null: no particular user. */
  requesterOf?(callId: string): string | null;
  /** Writes the notes to the lead agent, and so those in a conversation that is passed on. */
  readonly notes?: NoteMarks;
  /** The model of subagents without a model of their own. */
  readonly model: LanguageModel | undefined;
  /** The current lead agent, where there is one. */
  readonly agentName?: string;
  /**
   * Returns the tools of the lead agent or of the program, out of which a grant is made. `agentName`: the
   * tools of this agent, whichever leads now.
   */
  tools(agentName?: string | null): Readonly<Record<string, unknown>>;
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
  /**
   * Returns the configuration that stands in here for one whose subagents work elsewhere. Not asked for a subagent whose
   * tools are granted or denied, or that a budget is above. @defaultValue the same
   */
  standIn?(config: SubagentConfig): SubagentConfig;
  /** Subagents do their steps as jobs here, whatever their configurations say. @defaultValue false */
  readonly stepsAreJobs?: boolean;
  /** Keys of the calls that the user denied above the subagents of this scope. @defaultValue none */
  readonly denied?: ReadonlySet<string> | undefined;
  /** Tells, after a crash, whether the end of a subagent was reported. @defaultValue true */
  knowsEnd?(id: string, callId: string | null): boolean;
  /** Returns the outcome that was reported, where it is kept. */
  outcomeOf?(callId: string | null): Outcome | null;
  /** Reports a tool call that was under way when the process ended, and is not repeated. */
  inDoubt?(view: SubagentView, call: CallInDoubt): void;
  /** Reports something that this process lacks, and that an earlier one had. */
  lacks?(what: string): void;
  /** Asks the user. The answer comes back as an event of the subagent. */
  ask(question: AskedQuestion): void;
  /**
   * True if the process that continues has the open questions: they are not asked again. @defaultValue true
   */
  readonly keepsQuestions?: boolean;
  /** Withdraws a question that is over for the asker; `reason`: for the user. */
  withdraw(requestId: string, reason?: string): void;
  /** True if `inputRequested` finds an answer by itself: its requests end no wait. @defaultValue false */
  readonly handlesInput?: boolean;
  /** Passes a request on to the lead agent or the program; the answer comes back with `send`. */
  inputRequested(view: SubagentView, request: PendingInput): void;
  /** Reports that a request of `inputRequested` is over, however it ended. */
  inputSettled?(requestId: string): void;
  progressed(view: SubagentView, note: ProgressNote): void;
  changed(view: SubagentView): void;
  stepped(view: SubagentView, report: StepReport): void;
  /** The last call but `delivered`. `disposed` settles when its instance is disposed; it never rejects. */
  ended(view: SubagentView, outcome: Outcome, end: EndFacts): void;
  /** Reports that the lead agent, or the program, begins to wait for a subagent. */
  waitBegan?(): void;
  /** Reports that a wait of the lead agent, or of the program, is over. */
  waitEnded?(): void;
  /** Reports that its result has reached its addressee, also before `ended`. `parentId` null: the program. */
  delivered?(id: string, parentId: string | null): void;
}

export interface EndFacts {
  /** True if the result was delivered to a wait already. */
  readonly isDelivered: boolean;
  /** The words of the user that led to it; null: no user asked. */
  readonly request: string | null;
  readonly disposed: Promise<void>;
}
