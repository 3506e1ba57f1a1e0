// What a family of subagents needs of the session or program that it works for.

import type { LanguageModel } from 'ai';
import type { SubagentView } from '../contracts/session-views.ts';
import type { AskedQuestion } from '../contracts/records.ts';
import type { Host } from '../runtime/host.ts';
import type { SubagentConfig, SubagentDefinition } from '../contracts/config.ts';
import type { Briefing } from '../subagent/instance.ts';
import type { Outcome } from '../contracts/outcome.ts';
import type { OutcomeDesk } from '../../results/outcome-desk.ts';
import type { PendingInput, ProgressNote, SpawnRequest } from '../contracts/service-types.ts';
import type { CallInDoubt, StepReport, SubagentTask } from '../contracts/task.ts';

/** Nothing here may throw but `brief`, which may reject: then the run fails. */
export interface ScopePorts {
  /** Tells it from others of the same scope, in this process and the next. */
  readonly name: string;
  /** Can another process go on with its subagents? @defaultValue true */
  readonly goesOn?: boolean;
  readonly host: Host;
  /** What is done with outputs and outcomes; nothing, where it is absent. */
  readonly outcomes?: OutcomeDesk;
  /** What the user had said when this call of the lead agent was made; null: nobody asked. */
  requestOf?(callId: string): string | null;
  /** Who that was; null: nobody in particular. */
  requesterOf?(callId: string): string | null;
  /** Of the subagents that have none of their own. */
  readonly model: LanguageModel | undefined;
  /** The lead agent that leads now, where there is one. */
  readonly agentName?: string;
  /**
   * The tools of the lead agent or of the program, out of which a grant is made. `agentName`: of
   * this one, whoever leads now.
   */
  tools(agentName?: string | null): Readonly<Record<string, unknown>>;
  /** What a run is told when it starts. `messages`: the conversation that it goes on from. */
  brief(
    definition: SubagentDefinition,
    task: SubagentTask,
    messages: SpawnRequest['messages'],
  ): Briefing | Promise<Briefing>;
  /** The configuration of one that was spawned before a crash, by its tool and its own name. */
  configOf?(toolName: string, name: string): SubagentConfig | undefined;
  /** Does whoever it worked for know how it ended? Asked after a crash. @defaultValue true */
  knowsEnd?(id: string, callId: string | null): boolean;
  /** As what it was told then, where that is kept. */
  outcomeOf?(callId: string | null): Outcome | null;
  /** A tool call was being run when the process ended, and is not run again. */
  inDoubt?(view: SubagentView, call: CallInDoubt): void;
  /** To the user. The answer comes back as an event of the subagent. */
  ask(question: AskedQuestion): void;
  /** Whoever goes on has what was asked of the user: it need not be asked again. @defaultValue true */
  readonly keepsQuestions?: boolean;
  /** The question is over for the asker. */
  withdraw(requestId: string): void;
  /** `inputRequested` finds an answer by itself: what it is told ends no wait. @defaultValue false */
  readonly handlesInput?: boolean;
  /** To the lead agent or the program; the answer comes back by `send`. */
  inputRequested(view: SubagentView, request: PendingInput): void;
  /** What was told by `inputRequested` is over, however. */
  inputSettled?(requestId: string): void;
  progressed(view: SubagentView, note: ProgressNote): void;
  changed(view: SubagentView): void;
  stepped(view: SubagentView, report: StepReport): void;
  /**
   * The last call but `delivered`. `disposed` settles when its instance is disposed; it never
   * rejects.
   */
  ended(view: SubagentView, outcome: Outcome, end: EndFacts): void;
  /** The lead agent, or the program, waits for somebody. */
  waitBegan?(): void;
  /** A wait of the lead agent, or of the program, is over. */
  waitEnded?(): void;
  /** Its result has reached whom it was for, also before `ended`. `parentId` null: the program. */
  delivered?(id: string, parentId: string | null): void;
}

export interface EndFacts {
  /** Whoever waited for the result has it already. */
  readonly isDelivered: boolean;
  /** What the user had said that led to it; null: nobody asked. */
  readonly request: string | null;
  readonly disposed: Promise<void>;
}
