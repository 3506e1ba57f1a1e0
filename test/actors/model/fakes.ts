// Models, ids and time under the control of a test.

import type { LanguageModel } from 'ai';
import type { Environment } from '../../../src/actors/ports/environment.ts';

export type Model = Extract<LanguageModel, { specificationVersion: 'v4' }>;
export type Answer = Awaited<ReturnType<Model['doGenerate']>>;
export type Part = Answer['content'][number];
export type Prompted = Parameters<Model['doGenerate']>[0];

export const usage: Answer['usage'] = {
  inputTokens: { total: 10, noCache: 8, cacheRead: 2, cacheWrite: 0 },
  outputTokens: { total: 5, text: 4, reasoning: 1 },
};

export function answer(
  content: Part[],
  finish: Answer['finishReason']['unified'] = content.some(({ type }) => type === 'tool-call')
    ? 'tool-calls'
    : 'stop',
): Answer {
  return { content, finishReason: { unified: finish, raw: finish }, usage, warnings: [] };
}

export const text = (words: string): Part => ({ type: 'text', text: words });

export const call = (toolCallId: string, toolName: string, input: unknown): Part => ({
  type: 'tool-call',
  toolCallId,
  toolName,
  input: typeof input === 'string' ? input : JSON.stringify(input),
});

export interface ScriptedModel extends Model {
  readonly prompts: Prompted[];
}

/** A model with fixed answers, which are used in turn. A function may read the prompt. */
export function model(
  ...answers: (Answer | ((prompted: Prompted) => Answer | Promise<Answer>))[]
): ScriptedModel {
  const prompts: Prompted[] = [];
  return {
    specificationVersion: 'v4',
    provider: 'test',
    modelId: 'scripted',
    supportedUrls: {},
    prompts,
    async doGenerate(prompted) {
      const next = answers[prompts.length];
      prompts.push(prompted);
      if (next === undefined) throw new Error(`No answer for call ${prompts.length}`);
      return typeof next === 'function' ? next(prompted) : next;
    },
    doStream() {
      throw new Error('never streamed');
    },
  };
}

export const countingIds = (): Environment['ids'] => {
  let count = 0;
  return { next: (prefix) => `${prefix}_${++count}` };
};

interface ManualTime extends Pick<Environment, 'scheduler'> {
  readonly waiting: number;
  advance(ms: number): void;
}

export function manualTime(): ManualTime {
  let now = 0;
  let tasks: { at: number; task: () => void }[] = [];
  return {
    get waiting() {
      return tasks.length;
    },
    scheduler: {
      schedule(task, delayMs) {
        const entry = { at: now + delayMs, task };
        tasks.push(entry);
        return () => {
          tasks = tasks.filter((other) => other !== entry);
        };
      },
      yieldThen: (task) => void setImmediate(task),
    },
    advance(ms) {
      now += ms;
      const due = tasks.filter(({ at }) => at <= now);
      tasks = tasks.filter(({ at }) => at > now);
      for (const { task } of due) task();
    },
  };
}

/** Waits for one turn of the event loop. */
export const macrotask = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

/** Returns the result of a promise that settles within one turn of the event loop. */
export async function soon<T>(promise: Promise<T>): Promise<T | 'pending'> {
  return Promise.race([promise, macrotask().then(() => 'pending' as const)]);
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** A promise that the test settles. */
export function deferred<T>(): Deferred<T> {
  let settle: Omit<Deferred<T>, 'promise'> = { resolve() {}, reject() {} };
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}

export const never = <T>(): Promise<T> => new Promise<T>(() => {});
