// The subagents of the suite of runs. A task says what the model does, step by step, as `[trip a1: look_up, ask, charge]`, with two
// calls in one step as `look_up & charge`, and with a subagent's own steps as `guide look_up then ask`; each
// model call and each tool call is told to the suite, which counts it and may let it wait.

import { tool } from 'ai';
import { z } from 'zod';
import type { SubagentConfig } from '../../actors/contracts/config.ts';
import { createChildSubagentToolset } from '../../actors/subagent/child-toolset.ts';
import { createSubAgentTool } from '../../actors/subagents/toolsets/sub-agent-tool.ts';
import { scriptedModel, type ScriptedLanguageModel } from '../doubles/scripted-model.ts';
import type { ScriptedStep } from '../doubles/scripted-steps.ts';

/** Tells the suite that something is being done, such as `a1/charge`; resolves when it may go on. */
export type Tell = (what: string) => Promise<unknown>;

/** The subagents and the model of the suite, for a program and for the workers of an engine. */
export interface RunsConformanceAgents {
  /** By name: `traveller`, and `hurried`, whose questions expire after 300 ms. Both have the tools `guide` and `courier`. */
  readonly configs: Readonly<Record<string, SubagentConfig>>;
  readonly model: ScriptedLanguageModel;
}

/** @param tell In the process that plays the suite, the function that `open` was given; in a worker, whatever reaches it. */
export function runsConformanceAgents(tell: Tell): RunsConformanceAgents {
  const { request_input: requestInput } = createChildSubagentToolset();
  const trip = z.object({ trip: z.string() });
  const does = (what: string) => async (input: { readonly trip: string }) => {
    await tell(`${input.trip}/${what}`);
    return { did: what };
  };
  const tools = {
    look_up: {
      ...tool({ description: 'Looks up', inputSchema: trip, execute: does('look_up') }),
      idempotent: true,
    },
    charge: tool({ description: 'Charges the card', inputSchema: trip, execute: does('charge') }),
    refund: tool({
      description: 'Pays back',
      inputSchema: trip,
      needsApproval: true,
      execute: does('refund'),
    }),
  };
  const base = {
    instructions: 'You book rides.',
    runs: 'jobs',
    interactive: true,
    inputTimeout: 3_600_000,
    maxSteps: 8,
  } as const;
  const helper = (name: string, onParentClose: 'cancel' | 'abandon') =>
    createSubAgentTool(
      {
        ...base,
        name,
        tools,
        outputSchema: z.object({ text: z.string() }),
        structured: 'off',
      },
      z.object({ task: z.string() }),
      { onParentClose },
    );
  const guide = helper('guide', 'cancel');
  const courier = helper('courier', 'abandon');
  const own = { ...tools, request_input: requestInput, guide, courier };
  const model = scriptedModel({
    otherwise: async ({ prompt, results, outputSchema, system }) => {
      const whole = JSON.stringify(prompt);
      const [, name = '', script = ''] = /\[trip ([\w-]+): ([^\]]*)\]/u.exec(whole) ?? [];
      const steps = script.split(', ');
      const turn = prompt.filter(({ role }) => role === 'assistant').length;
      await tell(`${name}/model-${turn + 1}`);
      const step = steps[turn] ?? '';
      if (step === 'fail') throw new Error('The model is away');
      const calls = step.split(' & ').flatMap((part, at) => {
        const made = callOf(part, at === 0 ? name : `${name}-${at + 1}`);
        return made ? { ...made, id: `call_${turn + 1}${at === 0 ? '' : `_${at + 1}`}` } : [];
      });
      if (calls.length > 0) return { calls } satisfies ScriptedStep;
      const text = `Done: ${results.length > 1 ? JSON.stringify(results) : JSON.stringify(results[0] ?? null)}`;
      const isGuide = outputSchema !== null || system.includes('"text"');
      return { text: isGuide ? JSON.stringify({ text }) : text };
    },
  });
  return {
    configs: {
      traveller: { ...base, name: 'traveller', tools: own },
      hurried: { ...base, name: 'hurried', inputTimeout: 300, maxInputRetries: 2, tools: own },
    },
    model,
  };
}

function callOf(step: string, trip: string): { name: string; input: unknown } | null {
  if (step === 'look_up' || step === 'charge' || step === 'refund')
    return { name: step, input: { trip } };
  if (step === 'ask') return { name: 'ask_user', input: { question: 'Which one?' } };
  if (step === 'input') return { name: 'request_input', input: { question: 'How much?' } };
  const [, name, task] = /^(guide|courier) (.*)$/u.exec(step) ?? [];
  if (name === undefined || task === undefined) return null;
  const script = task.replaceAll(' then ', ', ');
  return { name, input: { task: `[trip ${trip}-${name}: ${script}]` } };
}
