// A streaming model whose answers the test supplies piece by piece, for tests of events in the middle of an answer.

import type { scriptedModel } from '../../src/testing/index.ts';

type Model = ReturnType<typeof scriptedModel>;
type CallOptions = Parameters<Model['doStream']>[0];
type Part =
  Awaited<ReturnType<Model['doStream']>>['stream'] extends ReadableStream<infer P> ? P : never;

/** One of the model's answers, which the test supplies. */
export interface HandAnswer {
  /** The call to which this is the answer. */
  readonly asked: CallOptions;
  text(delta: string): void;
  reasoning(delta: string): void;
  call(toolName: string, input?: unknown, toolCallId?: string): void;
  /** Ends the answer. */
  finish(): void;
}

/**
 * Creates the model. `answers` has one item for each call so far. A model that `isDeaf` does not stop when the call is
 * aborted.
 */
export function handModel({ isDeaf = false } = {}): {
  readonly model: Model;
  readonly answers: HandAnswer[];
} {
  const answers: HandAnswer[] = [];
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const model: Model = {
    specificationVersion: 'v4',
    provider: 'hand',
    modelId: 'hand',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('Only streams')),
    async doStream(asked) {
      let calls = 0;
      let open: 'text' | 'reasoning' | null = null;
      const stream = new ReadableStream<Part>({
        start(controller) {
          const put = (part: Part): void => controller.enqueue(part);
          const close = (): void => {
            if (open !== null) put({ type: `${open}-end`, id: open });
            open = null;
          };
          const words = (kind: 'text' | 'reasoning', delta: string): void => {
            if (open !== kind) {
              close();
              put({ type: `${kind}-start`, id: kind });
              open = kind;
            }
            put({ type: `${kind}-delta`, id: kind, delta });
          };
          put({ type: 'stream-start', warnings: [] });
          answers.push({
            asked,
            text: (delta) => words('text', delta),
            reasoning: (delta) => words('reasoning', delta),
            call(toolName, input = {}, toolCallId = `call_${answers.length}_${(calls += 1)}`) {
              close();
              put({ type: 'tool-call', toolCallId, toolName, input: JSON.stringify(input) });
            },
            finish() {
              close();
              const unified = calls > 0 ? 'tool-calls' : 'stop';
              put({ type: 'finish', usage, finishReason: { unified, raw: unified } });
              controller.close();
            },
          });
          if (!isDeaf)
            asked.abortSignal?.addEventListener('abort', () =>
              controller.error(asked.abortSignal?.reason),
            );
        },
      });
      return { stream };
    },
  };
  return { model, answers };
}
