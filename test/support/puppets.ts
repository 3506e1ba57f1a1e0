// Subagents that a test controls: each model call waits until the test supplies its answer. For tests of the subagent
// service.

import type { SubagentTree } from '../../src/actors/subagents/subagent-tree.ts';
import { callerOf } from '../../src/actors/model/caller.ts';
import { createChildSubagentToolset } from '../../src/actors/subagent/child-toolset.ts';
import { DELEGATES } from '../../src/actors/model/tool-flags.ts';
import {
  THE_LEAD,
  type AwaitOptions,
  type AwaitResult,
  type Requester,
  type SpawnReceipt,
  type SpawnRequest,
  type SubagentChunk,
  type SubagentReport,
} from '../../src/actors/contracts/service-types.ts';
import {
  createSubagentService,
  type SubagentServiceOptions,
} from '../../src/actors/subagents/subagent-service.ts';
import { createRuntime, type RuntimeOptions, type SubagentConfig } from '../../src/index.ts';
import {
  scriptedModel,
  simulatedEnvironment,
  type ScriptedPrompt,
  type ScriptedStep,
} from '../../src/testing/index.ts';
import { simpleTool } from './subagent-runs.ts';

export interface PuppetOptions extends Partial<SubagentServiceOptions> {
  readonly on?: Partial<RuntimeOptions>;
}

interface Played {
  readonly prompt: ScriptedPrompt;
  answer(step: ScriptedStep): void;
}

export const by = (subagentId: string | null): Requester => ({ subagentId });

const instructionsOf = (name: string): string => `You are the puppet <${name}>.`;

export function puppets({ on = {}, ...options }: PuppetOptions = {}) {
  const environment = simulatedEnvironment();
  const runtime = createRuntime({ environment, ...on });
  const waiting = new Map<string, Played>();
  const prompts: { readonly name: string; readonly prompt: ScriptedPrompt }[] = [];
  const model = scriptedModel({
    otherwise(prompt) {
      const name = /You are the puppet <(.*)>/.exec(prompt.system)?.[1] ?? '';
      prompts.push({ name, prompt });
      return new Promise((resolve, reject) => {
        waiting.set(name, { prompt, answer: resolve });
        prompt.signal?.addEventListener('abort', () => {
          waiting.delete(name);
          reject(prompt.signal?.reason as Error);
        });
      });
    },
  });
  const errors: unknown[] = [];
  const service = createSubagentService({
    runtime,
    model,
    onError: (error) => errors.push(error),
    ...options,
  });
  const chunks: SubagentChunk[] = [];
  service.events.subscribe((chunk) => chunks.push(chunk));
  /** The results of each subagent's `wait` tool, by subagent id. */
  const waited = new Map<string, AwaitResult>();
  const wait = {
    ...(simpleTool(() => null) as object),
    [DELEGATES]: true,
    async execute(input: { ids: string[] } & AwaitOptions, call: { abortSignal: AbortSignal }) {
      const caller = callerOf(call);
      if (!caller || caller.subagentId === null) return null;
      const { ids, ...rest } = input;
      const result = await service.await(ids, caller, { ...rest, signal: call.abortSignal });
      waited.set(caller.subagentId, result);
      return result.ok ? result.why : result.error.code;
    },
  };
  const configOf = (name: string, config: Partial<SubagentConfig> = {}): SubagentConfig => ({
    name,
    instructions: instructionsOf(name),
    maxSteps: 20,
    ...config,
    tools: { ...createChildSubagentToolset(), wait, ...config.tools },
  });
  const request = (
    name: string,
    {
      config,
      ...more
    }: Partial<Omit<SpawnRequest, 'config'>> & { config?: Partial<SubagentConfig> } = {},
  ): SpawnReceipt =>
    service.spawn({
      config: configOf(name, config),
      task: { toolName: name, args: {}, description: `Do ${name}` },
      caller: THE_LEAD,
      ...more,
    });
  const spawn = (...args: Parameters<typeof request>): string => {
    const receipt = request(...args);
    if (receipt.status === 'rejected') throw new Error(receipt.error.message);
    return receipt.subagentId;
  };
  const plays = async (name: string, step: ScriptedStep): Promise<void> => {
    await environment.settle();
    const played = waiting.get(name);
    if (!played) throw new Error(`${name} does not wait for its model`);
    waiting.delete(name);
    played.answer(step);
    await environment.settle();
  };
  return {
    environment,
    runtime,
    service,
    delegation: service as unknown as SubagentTree,
    chunks,
    errors,
    prompts,
    waited,
    configOf,
    request,
    spawn,
    settle: () => environment.settle(),
    /** Returns the number of timers of any kind. */
    timersLeft: () => environment.pendingTimers + environment.backgroundTimers,
    /** Returns whether the subagent's model is waiting for an answer. */
    isThinking: (name: string) => waiting.has(name),
    /** Ends the subagent with this result. */
    says: (name: string, text: string) => plays(name, { text }),
    /** Makes the subagent's model call tools. */
    calls: (name: string, ...calls: [tool: string, input: object][]) =>
      plays(name, { calls: calls.map(([tool, input]) => ({ name: tool, input })) }),
    /** Returns the current report without delivering it. */
    look: (id: string): SubagentReport | undefined =>
      service.list(THE_LEAD, { includeEnded: true }).find((report) => report.id === id),
    types: (id?: string) =>
      chunks
        .filter(({ subagentId }) => id === undefined || subagentId === id)
        .map(({ type }) => type),
  };
}
