// A text session whose lead agent starts as many errands as the user requests, and whose subagents ask the user one
// question each; and the same work without Offstage.

import { generateText, isStepCount, tool, type ToolSet } from 'ai';
import { z } from 'zod';
import {
  defineTool,
  TextSession,
  type QuestionView,
  type Runtime,
  type SubagentConfig,
  type TextSessionOptions,
} from '../../src/index.ts';
import { until } from './process.ts';
import { call, INSTRUCTIONS, model, rawTools, stepsDone, text, type Model } from './workload.ts';

const QUESTION = 'Shall it be first or second class?';
const OPTIONS = [
  { id: 'first', label: 'First class' },
  { id: 'second', label: 'Second class' },
];

/** Called before a model makes a step; `done` is the number of earlier steps. */
export type Witness = (done: number) => void;

/** A model that asks once, then ends. */
export function askingModel(witness: Witness): Model {
  return model((prompt) => {
    const done = stepsDone(prompt);
    witness(done);
    return done === 0
      ? [call('ask_user', { question: QUESTION, options: OPTIONS })]
      : [text('It is booked.')];
  });
}

type Streamed =
  Awaited<ReturnType<Model['doStream']>>['stream'] extends ReadableStream<infer Part>
    ? Part
    : never;

const usage = {
  inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 20, text: 20, reasoning: 0 },
};

/**
 * The lead agent's model: `errands 7` starts seven errands; any other message gets a short reply. It also writes the
 * summaries.
 */
const leadModel: Model = model(
  () => [text('They ran errands.')],
  ({ prompt }) => {
    const answered = prompt.findLastIndex(({ role }) => role === 'assistant' || role === 'tool');
    const said = JSON.stringify(prompt.slice(answered + 1));
    const errands = Number(/errands (\d+)/.exec(said)?.[1] ?? 0);
    const parts: Streamed[] = [{ type: 'stream-start', warnings: [] }];
    for (let number = 0; number < errands; number += 1)
      parts.push(call('run_errand', { what: `errand ${number}` }) as Streamed);
    if (errands === 0)
      parts.push(
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'All right.' },
        { type: 'text-end', id: 't' },
      );
    const unified = errands > 0 ? ('tool-calls' as const) : ('stop' as const);
    parts.push({ type: 'finish', usage, finishReason: { unified, raw: unified } });
    const stream = new ReadableStream<Streamed>({
      start(controller) {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      },
    });
    return Promise.resolve({ stream });
  },
);

const errandTool = defineTool({
  name: 'run_errand',
  description: 'Runs an errand in the background',
  parameters: z.object({ what: z.string() }),
  execution: 'background',
  pendingMessage: 'I am on it.',
});

export interface Desk {
  readonly session: TextSession;
  /** Returns the question that can be answered now. */
  readonly open: () => QuestionView | undefined;
  /** Returns the number of results that the lead agent has told. */
  readonly told: () => number;
  /** Starts this many subagents, and resolves when each has asked its question. */
  start(errands: number): Promise<void>;
}

const config: SubagentConfig = {
  name: 'errand runner',
  instructions: INSTRUCTIONS,
  tools: rawTools,
  interactive: true,
  // The time of the wait does not matter here.
  inputTimeout: 3_600_000,
};

/** The app of a desk, for a program that runs it in another way. */
export function deskApp(
  subagents: Model,
): Pick<TextSessionOptions, 'model' | 'agents' | 'subagentConfigs'> {
  return {
    model: leadModel,
    agents: [{ name: 'desk', instructions: 'You are at the desk.', tools: [errandTool] }],
    subagentConfigs: { run_errand: { ...config, model: subagents } },
  };
}

/**
 * Opens a session that may hold `most` subagents. Limits that 100 subagents do not reach keep their defaults. With
 * the id of a session in the journal it resumes that session.
 */
export async function openDesk(
  runtime: Runtime,
  subagents: Model,
  most: number,
  sessionId?: string,
): Promise<Desk> {
  const session = new TextSession({
    runtime,
    ...(sessionId === undefined ? {} : { sessionId }),
    ...deskApp(subagents),
    limits:
      most <= 100
        ? {}
        : {
            maxConcurrentPerSession: 1000,
            maxLivePerSession: most,
            maxTotalPerSession: 1_000_000,
            maxDeliveries: 2 * most,
          },
  });
  let asked = 0;
  let told = 0;
  let open: QuestionView | undefined;
  const known = new Set<string>();
  session.questions.subscribe((question) => {
    if (!known.has(question.requestId)) asked += 1;
    known.add(question.requestId);
    if (question.state === 'open') open = question;
    else if (open?.requestId === question.requestId) open = undefined;
  });
  session.notifications.subscribe(({ kind, state }) => {
    if (kind === 'result' && state === 'delivered') told += 1;
  });
  // The app reads the replies and watches the screen.
  session.parts.subscribe();
  session.store.subscribe(() => {});
  await session.start();
  return {
    session,
    open: () => open,
    told: () => told,
    async start(errands) {
      const before = asked;
      await session.sendText(`errands ${errands}`);
      await until(() => asked === before + errands, `${errands} questions`);
    },
  };
}

/** The floor: `generateText` that waits in `execute` of `ask_user`. */
export interface ParkedRun {
  answer(): void;
  readonly ended: Promise<string>;
}

const inputSchema = z.object({
  question: z.string().describe('The question, as it shall be said to the user'),
  options: z
    .array(z.object({ id: z.string(), label: z.string(), description: z.string().optional() }))
    .max(20)
    .optional(),
});

const waiting: ((answer: object) => void)[] = [];

const askingTools: ToolSet = {
  ...rawTools,
  ask_user: tool({
    description: 'Asks the user a question and waits for the answer',
    inputSchema,
    execute: () => new Promise<object>((resolve) => waiting.push(resolve)),
  }),
};

/** Starts this many runs, and resolves when each waits for its answer. */
export async function parkBare(subagents: Model, count: number): Promise<ParkedRun[]> {
  const before = waiting.length;
  const ends = Array.from({ length: count }, () =>
    generateText({
      model: subagents,
      instructions: INSTRUCTIONS,
      prompt: 'Execute the task: run an errand',
      tools: askingTools,
      stopWhen: isStepCount(5),
    }).then((result) => result.text),
  );
  await until(() => waiting.length === before + count, `${count} parked runs`);
  const answers = waiting.splice(before);
  return ends.map((ended, index) => ({
    ended,
    answer: () => answers[index]?.({ userResponse: 'Second class', optionId: 'second' }),
  }));
}
