// Subagents without a conversation, whose model follows a script, for tests of the step loop. For tests that need a
// user or a session, use `text-talk.ts`.

import { tool } from 'ai';
import { z } from 'zod';
import { createRuntime, type RuntimeOptions, type SubagentConfig } from '../../src/index.ts';
import {
  runSubagent,
  type RunSubagentOptions,
  type SubagentRun,
} from '../../src/actors/subagents/run-subagent.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  type Script,
  type ScriptedCall,
  type ScriptedPrompt,
  type ScriptedStep,
} from '../../src/testing/index.ts';

const INSTRUCTIONS = 'You do one thing.';

/** Returns a step that calls tools. Each call is `[name, input, id?]`. */
export function calls(...wanted: [name: string, input?: unknown, id?: string][]): ScriptedStep {
  return {
    calls: wanted.map(([name, input = {}, id]): ScriptedCall =>
      id === undefined ? { name, input } : { name, input, id },
    ),
  };
}

export const say = (text: string): ScriptedStep => ({ text });

/** Returns a script that plays the steps in order and then repeats the last one. A step may read the prompt. */
export function steps(...all: (ScriptedStep | Script)[]): Script {
  return (prompt) => {
    const step = all[Math.min(prompt.turn, all.length) - 1] as ScriptedStep | Script;
    return typeof step === 'function' ? step(prompt) : step;
  };
}

/** Creates a tool that needs no arguments. */
export function simpleTool(
  execute: (options: {
    toolCallId: string;
    abortSignal?: AbortSignal;
    idempotencyKey?: string;
  }) => unknown,
  more: Record<string, unknown> = {},
): unknown {
  return {
    ...tool({ description: 'Does something', inputSchema: z.looseObject({}) }),
    execute: (_: unknown, options: never) => execute(options),
    ...more,
  };
}

/** A promise that never settles. */
export const never = (): Promise<never> => new Promise(() => {});

/** Returns the results of the last calls as the model reads them: the tool name, the kind of output, and the value. */
export function resultsIn({ prompt }: ScriptedPrompt): [string, string, unknown][] {
  const last = prompt.at(-1);
  if (last?.role !== 'tool') return [];
  return last.content.flatMap((part) => {
    if (part.type !== 'tool-result') return [];
    const output = part.output as { type: string; value?: unknown; reason?: unknown };
    return [
      [part.toolName, output.type, output.value ?? output.reason] as [string, string, unknown],
    ];
  });
}

export function subagentRuns(script: Script, runtimeOptions: Partial<RuntimeOptions> = {}) {
  const environment = simulatedEnvironment();
  const prompts: ScriptedPrompt[] = [];
  const model = scriptedModel({
    scripts: [
      {
        when: INSTRUCTIONS,
        script(prompt) {
          prompts.push(prompt);
          return script(prompt);
        },
      },
    ],
  });
  const runtime = createRuntime({ environment, ...runtimeOptions });
  const errors: { error: unknown; where: string }[] = [];
  const run = (
    config: Partial<SubagentConfig> = {},
    options: Partial<RunSubagentOptions> = {},
  ): SubagentRun =>
    runSubagent({ name: 'worker', instructions: INSTRUCTIONS, ...config }, 'Do it', {
      runtime,
      model,
      onError: (error, where) => errors.push({ error, where }),
      ...options,
    });
  return {
    environment,
    runtime,
    model,
    prompts,
    errors,
    run,
    /** Runs to the end without any time passing. */
    outcome: (config: Partial<SubagentConfig> = {}, options: Partial<RunSubagentOptions> = {}) =>
      run(config, options).result,
  };
}

/** Creates a subagent that reports its progress and continues each time `next` is called. */
export function counting(words: readonly string[] = ['10 of 30', '20 of 30']) {
  const go: (() => void)[] = [];
  return {
    subagent: {
      script: steps(calls(['count']), say('Sales are up.')),
      config: {
        tools: {
          count: simpleTool(async function* count() {
            for (const progress of words) {
              yield { progress };
              await new Promise<void>((resolve) => go.push(resolve));
            }
            yield 'counted';
          }),
        },
      },
    },
    next: () => go.shift()?.(),
  };
}
