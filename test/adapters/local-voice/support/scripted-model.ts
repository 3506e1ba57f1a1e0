// A language model that follows a script and records its calls.

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
} from '@ai-sdk/provider';
import { providerCheck } from '../../../../src/testing/doubles/provider-rules.ts';

/** A text, a call, an error, or a promise to wait for. */
export type ModelStep =
  | string
  | { readonly call: string; readonly input: unknown }
  | { readonly fail: string }
  | { readonly until: Promise<unknown> }
  | { readonly finish: 'length' | 'content-filter' };

export interface ScriptedModel extends LanguageModelV4 {
  /** The answers of the next calls, in order. A call without a script fails. */
  readonly answers: ModelStep[][];
  readonly calls: LanguageModelV4CallOptions[];
  /** The messages of a call, as plain data. */
  prompt(index: number): unknown[];
}

export function scriptedModel(...answers: ModelStep[][]): ScriptedModel {
  const calls: LanguageModelV4CallOptions[] = [];
  const rules = providerCheck(true);
  return {
    specificationVersion: 'v4',
    provider: 'test',
    modelId: 'scripted',
    supportedUrls: {},
    answers,
    calls,
    prompt: (index) => JSON.parse(JSON.stringify(calls.at(index)?.prompt ?? null)) as unknown[],
    doGenerate: () => Promise.reject(new Error('not used')),
    doStream: (options) => {
      rules.check(options);
      calls.push(options);
      const steps = answers.shift();
      if (steps === undefined) return Promise.reject(new Error('no script for this call'));
      return Promise.resolve({ stream: ReadableStream.from(partsOf(steps, options.abortSignal)) });
    },
  };
}

async function* partsOf(
  steps: readonly ModelStep[],
  signal: AbortSignal | undefined,
): AsyncGenerator<LanguageModelV4StreamPart> {
  let calls = 0;
  let texts = 0;
  let reason: 'stop' | 'tool-calls' | 'length' | 'content-filter' = 'stop';
  yield { type: 'stream-start', warnings: [] };
  for (const step of steps) {
    if (typeof step === 'string') {
      const id = `text-${(texts += 1)}`;
      yield { type: 'text-start', id };
      // As with real models, a few characters at a time.
      for (const delta of step.match(/.{1,7}/gs) ?? []) yield { type: 'text-delta', id, delta };
      yield { type: 'text-end', id };
    } else if ('until' in step) {
      await step.until;
    } else if ('fail' in step) {
      throw new Error(step.fail);
    } else if ('finish' in step) {
      reason = step.finish;
    } else {
      reason = 'tool-calls';
      const toolCallId = `model-call-${(calls += 1)}`;
      const input = JSON.stringify(step.input);
      yield { type: 'tool-input-start', id: toolCallId, toolName: step.call };
      yield { type: 'tool-input-delta', id: toolCallId, delta: input };
      yield { type: 'tool-input-end', id: toolCallId };
      yield { type: 'tool-call', toolCallId, toolName: step.call, input };
    }
    if (signal?.aborted) return;
  }
  yield {
    type: 'finish',
    finishReason: { unified: reason, raw: reason },
    usage: {
      inputTokens: { total: 100, noCache: 60, cacheRead: 40, cacheWrite: 0 },
      outputTokens: { total: 20, text: 20, reasoning: 0 },
    },
  };
}
