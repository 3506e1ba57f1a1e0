// A dialogue about running work as data, with the calls that a lead model makes for each line; the session does the
// rest. It is played in text and on the fake servers of the wires, and the outcome is returned.
//
// The script of a lead model may use only what a model reads: the user's messages, its own calls, and the runtime's
// texts.

import { tool } from 'ai';
import { z } from 'zod';
import {
  asRecord,
  readConversation,
  type Conversation,
} from '../../../examples/voice-demo/rules/conversation.ts';
import { dueOf, leadReply } from '../../../examples/voice-demo/rules/lead.ts';
import type { Reply } from '../../../examples/voice-demo/rules/reply.ts';
import { readTask } from '../../../examples/voice-demo/rules/subagents.ts';
import { defineTool, type SessionEvent } from '../../../src/index.ts';
import { scriptedModel } from '../../../src/testing/index.ts';
import type { VoiceWire } from '../../../src/testing/voice-server/index.ts';
import type { DialogueStage } from '../record.ts';
import { textStage, type StageParts } from '../stages/text-stage.ts';
import { wireResponder } from '../stages/wire-responder.ts';
import { wireStage } from '../stages/wire-stage.ts';

export type Call = readonly [name: string, input: object];

export interface Line {
  readonly says: string;
  /** @defaultValue when no one has spoken for a while */
  readonly when?:
    | { readonly asked: string }
    | { readonly ended: string }
    | { readonly afterMs: number };
  /** The model's calls; `hasBegun`: it has called a tool before. @defaultValue none */
  readonly calls?: readonly Call[] | ((hasBegun: boolean) => readonly Call[]);
  /** The model's further calls after answers that contain this text. */
  readonly next?: readonly [answer: string, ...calls: Call[]];
  /** The model's words. */
  readonly reply?: string;
  /** The status of the last answer of the runtime's tools; `told`: the task has read the message, or will. */
  readonly comes?: string;
}

export interface Tool {
  /** @defaultValue it runs until the end of the dialogue */
  readonly takesS?: number;
  /** The arguments of the call that the user must approve, computed from the task and the messages that it received. */
  readonly acts?: (
    task: Readonly<Record<string, unknown>>,
    told: readonly string[],
    /** What the user said when refusing the earlier calls. */
    refused: readonly string[],
  ) => object;
  /** A tool of the lead agent itself, with its result. */
  readonly finds?: string;
}

export interface Steered {
  readonly name: string;
  readonly tools: Readonly<Record<string, Tool>>;
  /** The calls for the user's first message. */
  readonly begins?: readonly Call[];
  readonly lines: readonly Line[];
  /** The tasks in the order of their start: the tool, how the task ended, and the messages that it read. */
  readonly tasks: readonly (readonly [tool: string, state: string, ...told: string[]])[];
  /** What was done with the user's approval. @defaultValue nothing */
  readonly done?: readonly object[];
  readonly said?: readonly RegExp[];
  readonly unsaid?: readonly RegExp[];
}

export const status = (task?: string): Call => ['running_task', { action: 'status', task }];
export const stop = (task: string): Call => ['running_task', { action: 'stop', task }];
export const tell = (words: string, task?: string): Call => [
  'running_task',
  { action: 'tell', words, task },
];
export const settle = (action: string, quote: string, text?: unknown): Call => [
  'settle_question',
  {
    action,
    quote,
    ...(text !== undefined && { text: typeof text === 'string' ? text : JSON.stringify(text) }),
  },
];

const FIRST = 'Please begin with what we have talked about.';
const SLICE_S = 4;

interface World {
  readonly done: object[];
  /** What each task has read, by its name and arguments. */
  readonly read: Map<string, readonly string[]>;
}

function brain({ lines, begins = [] }: Steered) {
  const all: readonly Line[] = [{ says: FIRST, calls: begins }, ...lines];
  return (conversation: Conversation, tools: ReadonlySet<string>, isUnasked = false): Reply => {
    const { entries, assignment, instructions } = conversation;
    if (assignment || instructions.includes('Say exactly'))
      return leadReply(conversation, tools, isUnasked);
    const due = dueOf(entries);
    const lineOf = (words: string) => all.find(({ says }) => says === words);
    const line = due.utterances.map(lineOf).findLast((one) => one !== undefined);
    const made = (calls: readonly Call[]) =>
      calls.map(([toolName, input]) => ({
        toolName,
        input: { ...input } as Record<string, unknown>,
      }));
    if (line) {
      const hasBegun = entries.some(({ kind }) => kind === 'call');
      const { calls = [], reply = calls.length === 0 ? 'I see.' : '' } = line;
      return { text: reply, calls: made(typeof calls === 'function' ? calls(hasBegun) : calls) };
    }
    const answers = JSON.stringify(due.results.map(({ output }) => output));
    const said = entries.findLast((entry) => entry.kind === 'user' && lineOf(entry.text));
    const [answer, ...calls] = (said?.kind === 'user' && lineOf(said.text)?.next) || [''];
    const last = JSON.stringify(due.results.at(-1)?.output ?? '');
    if (answer !== '' && last.includes(answer)) return { text: '', calls: made(calls) };
    if (due.results.length > 0 && answers.includes('"not_started"')) return { text: '', calls: [] };
    return leadReply(conversation, tools, isUnasked);
  };
}

function partsOf(dialogue: Steered, { done, read }: World): StageParts {
  const think = brain(dialogue);
  return (environment) => {
    const wait = (ms: number): Promise<void> =>
      new Promise((resolve) => {
        environment.scheduler.schedule(resolve, ms);
      });
    const model = scriptedModel({
      otherwise: ({ prompt, toolNames }) => {
        const conversation = readConversation(prompt);
        const task = readTask(conversation);
        if (!task) {
          const { text, calls } = think(conversation, new Set(toolNames), false);
          return {
            text,
            calls: calls.map(({ toolName: name, input }) => ({
              name,
              input: JSON.stringify(input),
            })),
          };
        }
        const { takesS = Number.POSITIVE_INFINITY, acts } = dialogue.tools[task.toolName] ?? {};
        read.set(`${task.toolName} ${JSON.stringify(task.args)}`, task.told);
        const call = (name: string, input: object) => ({
          calls: [{ name, input: JSON.stringify(input) }],
        });
        if (task.results('look').length * SLICE_S < takesS) return call('look', {});
        const all = task.results('act');
        const acted = all.at(-1);
        const refused = all.flatMap(({ isDenied, error }) => (isDenied ? [error ?? ''] : []));
        const input = acts?.(task.args, task.told, refused);
        const isNew = JSON.stringify(input) !== JSON.stringify(acted && task.inputOf(acted));
        if (input && (!acted || (acted.isDenied && isNew))) return call('act', input);
        const result = acted?.isDenied ? 'not done' : 'done';
        return { text: `The ${task.toolName} is ${result}.` };
      },
    });
    const names = Object.entries(dialogue.tools);
    const agent = {
      name: 'lead',
      instructions: 'You are the lead agent.',
      tools: names.map(([name, { finds }]) => {
        const common = { name, description: `Does ${name}`, parameters: z.looseObject({}) };
        if (finds === undefined)
          return defineTool({ ...common, execution: 'background', pendingMessage: 'On it.' });
        return defineTool({
          ...common,
          pendingMessage: 'Still looking.',
          execute: async (_, { abortSignal }) => {
            await Promise.race([
              wait(20_000),
              new Promise((resolve) => {
                abortSignal.addEventListener('abort', resolve);
              }),
            ]);
            return finds;
          },
          timeout: 120_000,
          detach: { onWords: true },
        });
      }),
    };
    const configOf = (name: string) => ({
      name,
      instructions: `You do ${name}.`,
      maxSteps: 300,
      tools: {
        look: tool({
          description: 'Looks',
          inputSchema: z.object({}),
          execute: () => wait(SLICE_S * 1000),
        }),
        act: {
          ...tool({
            description: 'Does it',
            inputSchema: z.looseObject({}),
            execute: (input) => {
              done.push(input);
              return 'done';
            },
          }),
          approvalQuestion: (input: object) =>
            `May I do this ${name}: ${Object.values(input).join(', ')}?`,
        },
      },
      toolApproval: { act: 'user-approval' as const },
    });
    const subagents = names.filter(([, { finds }]) => finds === undefined);
    return {
      model,
      agents: [agent],
      subagentConfigs: Object.fromEntries(subagents.map(([name]) => [name, configOf(name)])),
    };
  };
}

const QUIET_MS = 1500;
const PATIENCE_MS = 60_000;

async function until(stage: DialogueStage, isSo: () => boolean): Promise<void> {
  const end = stage.now + PATIENCE_MS;
  while (!isSo() && stage.now < end) await stage.pass(200);
}

async function quiet(stage: DialogueStage): Promise<void> {
  let since = stage.now;
  await until(stage, () => {
    const { floor, deliveries, questions } = stage.state;
    const isTold = deliveries.some(
      ({ state, kind, card }) =>
        !card && kind !== 'question' && (state === 'offered' || state === 'playing'),
    );
    const isAsking = questions.some(({ state }) => state === 'presenting');
    const isBusy = floor !== 'nobody' || stage.sounds === true || isTold || isAsking;
    if (isBusy) since = stage.now;
    return stage.now - since >= QUIET_MS;
  });
}

async function comes(stage: DialogueStage, when: Line['when']): Promise<void> {
  if (when && 'afterMs' in when) return stage.pass(when.afterMs);
  const of = (name: string) => stage.state.subagents.filter(({ toolName }) => toolName === name);
  if (when && 'asked' in when)
    await until(stage, () =>
      stage.state.questions.some(
        ({ state, subagentId }) =>
          state === 'open' && of(when.asked).some(({ id }) => id === subagentId),
      ),
    );
  if (when && 'ended' in when)
    await until(stage, () => of(when.ended).some(({ endedAt }) => endedAt !== null));
  await quiet(stage);
}

/** The outcome of a dialogue, in the same form as the expectation. */
export interface Came {
  readonly tasks: Steered['tasks'];
  readonly done: readonly object[];
  /** The status of the last answer after each line that names one. */
  readonly statuses: readonly (string | undefined)[];
  readonly missing: readonly string[];
  readonly errors: readonly string[];
}

export async function playSteered(where: 'text' | VoiceWire, dialogue: Steered): Promise<Came> {
  const world: World = { done: [], read: new Map() };
  const parts = partsOf(dialogue, world);
  let session: ReturnType<Parameters<StageParts>[1]> | undefined;
  const answered: Extract<SessionEvent, { type: 'tool.answered' }>[] = [];
  const watched: StageParts = (environment, sessionOf) => {
    environment.scheduler.schedule(() => {
      session = sessionOf();
      session.events.subscribe((event) => {
        if (event.type === 'tool.answered') answered.push(event);
      });
    }, 0);
    return parts(environment, sessionOf);
  };
  const think = brain(dialogue);
  const tools = Object.keys(dialogue.tools);
  const stage =
    where === 'text'
      ? await textStage(watched)
      : await wireStage(where, watched, wireResponder({ reply: think, tools }));
  const { begins = [], lines } = dialogue;
  if (begins.length > 0) await stage.says(FIRST);
  const statuses: (string | undefined)[] = [];
  for (const { says, when, comes: expected } of lines) {
    await comes(stage, when);
    const before = answered.length;
    await stage.says(says);
    if (expected === undefined) continue;
    const isOurs = ({ name }: { name: string }) =>
      name === 'running_task' || name === 'settle_question';
    const last = () => answered.slice(before).findLast(isOurs);
    await until(stage, () => last() !== undefined);
    await quiet(stage);
    statuses.push(statusIn(last()?.output));
  }
  await quiet(stage);
  // Long enough for the lead agent's longest tool and the delivery of its result.
  const isLong = Object.values(dialogue.tools).some(({ finds }) => finds !== undefined);
  await stage.pass(isLong ? 30_000 : 6000);
  await quiet(stage);
  const seen = new Map<string, number>();
  const tasks = stage.state.subagents.map(({ toolName, state, endedAt }) => {
    const isWaiting = state === 'waiting_for_input';
    const now = endedAt !== null ? state : isWaiting ? 'asks' : 'running';
    const at = seen.get(toolName) ?? 0;
    seen.set(toolName, at + 1);
    const key = [...world.read.keys()].filter((name) => name.startsWith(`${toolName} `))[at];
    return [toolName, now, ...(world.read.get(key ?? '') ?? [])] as const;
  });
  const { said, errors } = await stage.finish();
  await stage.close();
  const heard = said.join('\n');
  const missing = [
    ...(dialogue.said ?? [])
      .filter((words) => !words.test(heard))
      .map((words) => `not said: ${words}`),
    ...(dialogue.unsaid ?? [])
      .filter((words) => words.test(heard))
      .map((words) => `said: ${words}`),
  ];
  return {
    tasks,
    done: world.done,
    statuses,
    missing: missing.map((why) => `${why} in ${heard}`),
    errors,
  };
}

const TOLD: ReadonlySet<unknown> = new Set(['read', 'passed_on']);

function statusIn(output: unknown): string {
  const { status: given, tasks } = asRecord(output);
  if (TOLD.has(given)) return 'told';
  return given === undefined && Array.isArray(tasks) ? 'tasks' : String(given);
}

/** The expected outcome, in the same form. */
export function wantedOf({ tasks, done = [], lines }: Steered): Came {
  const statuses = lines.flatMap(({ comes: status }) => (status === undefined ? [] : [status]));
  return { tasks, done, statuses, missing: [], errors: [] };
}
