// The subagents of the suite of runs. A task such as `[trip a1: look_up, ask, charge]` scripts the model step by step.
// `look_up & charge` is two calls in one step, `guide look_up then ask` is a subagent with steps, and `spawn look_up
// then ask` is a background subagent, which `hurry` interrupts and `await` waits for. The model's final text repeats
// the messages `hear …`. The agents report each model call and tool call to the suite, which counts the call and may
// make it wait.

import { tool } from 'ai';
import { z } from 'zod';
import type { SubagentConfig } from '../../../src/actors/contracts/config.ts';
import { createChildSubagentToolset } from '../../../src/actors/subagent/child-toolset.ts';
import { createParentSubagentToolset } from '../../../src/actors/subagents/toolsets/parent-toolset.ts';
import { createSubAgentTool } from '../../../src/actors/subagents/toolsets/sub-agent-tool.ts';
import { ProviderError } from '../../../src/values/errors.ts';
import {
  scriptedModel,
  type ScriptedLanguageModel,
  type ScriptedPrompt,
} from '../../../src/testing/doubles/scripted-model.ts';
import type { ScriptedStep } from '../../../src/testing/doubles/scripted-steps.ts';

/** The message that interrupts a subagent. */
const HURRY = 'Be quick about it';
/** The last part of the question that the model asks if a tool is missing. */
const INSTEAD = '-instead';
/** An engine may leave a run with one worker for as long as the worker can run its turns. */
const MAX_INSTEAD = 3;
/** The time limit of `brief`. */
export const BRIEF_MS = 2_000;

/** The duration of `sleep`. */
export const SLEEP_MS = 600;

/** Reports a call such as `a1/charge` to the suite, and resolves when the call may proceed. */
export type Tell = (what: string) => Promise<unknown>;

/** The suite's subagents and model, for a program and for the workers of an engine. */
export interface RunsConformanceAgents {
  /**
   * The configurations by name: `traveller`, with at most 8 steps; `scout`, which the others spawn; `hurried`, whose
   * questions expire after 300 ms; `brief`, with a time limit of 2 s; `patient`, which retries a failed model call
   * after ten minutes; and `tireless`, with at most 10,000 steps. Each configuration has the tools `guide`, `courier`
   * and `spawn_subagent`.
   */
  readonly configs: Readonly<Record<string, SubagentConfig>>;
  readonly model: ScriptedLanguageModel;
}

/** The version of a worker's agents. */
export type AgentsVersion = 'earlier' | 'later';

/** The tools and configurations that the earlier version lacks. */
const LATER: ReadonlySet<string> = new Set([
  'charge',
  'guide',
  'spawn_subagent',
  'patient',
  'scout',
]);

function earlier({ configs, model }: RunsConformanceAgents): RunsConformanceAgents {
  const known = <T>(all: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(all).filter(([name]) => !LATER.has(name)));
  const before = Object.entries(known(configs)).map(([name, { tools = {}, ...config }]) => {
    const left = known(tools);
    return [name, { ...config, tools: left }];
  });
  return { configs: Object.fromEntries(before) as RunsConformanceAgents['configs'], model };
}

/**
 * @param tell In the suite's process, the function that `open` received. In a worker, a function that reaches that
 * process.
 * @param version `earlier` lacks some of the tools and configurations, for the stage's `deploy`. @defaultValue 'later'
 */
export function runsConformanceAgents(
  tell: Tell,
  version: AgentsVersion = 'later',
): RunsConformanceAgents {
  const agents = laterAgents(tell);
  return version === 'later' ? agents : earlier(agents);
}

function laterAgents(tell: Tell): RunsConformanceAgents {
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
    maxSleepMs: 60_000,
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
  const scout = { ...base, name: 'scout', completion: 'turn' } as const;
  const own = {
    ...tools,
    request_input: requestInput,
    guide,
    courier,
    ...createParentSubagentToolset({ agent: scout }),
  };
  const model = scriptedModel({
    otherwise: async ({ prompt, results, outputSchema, system, toolNames }) => {
      const whole = JSON.stringify(prompt);
      const [, name = '', script = ''] = /\[trip ([\w-]+): ([^[\]]*)\]/u.exec(whole) ?? [];
      const steps = script.split(', ');
      const answers = prompt.filter(({ role }) => role === 'assistant');
      const turn = answers.length;
      await tell(`${name}/model-${turn + 1}`);
      const instead = answers.filter((one) => JSON.stringify(one).includes(`"${name}${INSTEAD}"`));
      const step = steps[turn - instead.length] ?? '';
      if (step === 'fail') throw new Error('The model is away');
      if (step === 'busy') throw new ProviderError('RATE_LIMITED', 'Busy', { retryable: true });
      const [, spawned = ''] = /"subagentId":"([^"]+)"/u.exec(whole) ?? [];
      const calls = step.split(' & ').flatMap((part, at) => {
        const made = callOf(part, at === 0 ? name : `${name}-${at + 1}`, spawned);
        return made ? { ...made, id: `call_${turn + 1}${at === 0 ? '' : `_${at + 1}`}` } : [];
      });
      // The worker has the earlier version. After the answer to this question, another worker may have the tool.
      if (calls.some((call) => !toolNames.includes(call.name))) {
        if (instead.length >= MAX_INSTEAD) return { text: 'Done: as far as I can' };
        const input = { question: `${name}${INSTEAD}` };
        return { calls: [{ name: 'ask_user', input, id: `call_${turn + 1}` }] };
      }
      if (calls.length > 0) return { calls } satisfies ScriptedStep;
      const done = JSON.stringify(results.length > 1 ? results : (results[0] ?? null));
      const text = `Done: ${done}${heardIn(prompt)}${name.endsWith('-scout') && whole.includes(HURRY) ? ', in a hurry' : ''}`;
      const isGuide = outputSchema !== null || system.includes('"text"');
      return { text: isGuide ? JSON.stringify({ text }) : text };
    },
  });
  return {
    configs: {
      traveller: { ...base, name: 'traveller', tools: own },
      hurried: { ...base, name: 'hurried', inputTimeout: 300, maxInputRetries: 2, tools: own },
      brief: { ...base, name: 'brief', timeout: BRIEF_MS, tools: own },
      // `scout` has the tools of its parent and the tools of every spawned subagent.
      scout: { ...scout, tools: { ...own, ...createChildSubagentToolset() } },
      tireless: { ...base, name: 'tireless', maxSteps: 10_000, tools: own },
      patient: { ...base, name: 'patient', retry: { baseDelayMs: 600_000 }, tools: own },
    },
    model,
  };
}

/** Lists the words in messages such as `hear left`, each with the number of the model's answers before it. */
function heardIn(prompt: ScriptedPrompt['prompt']): string {
  let answers = 0;
  const heard: string[] = [];
  for (const message of prompt) {
    if (message.role === 'assistant') answers += 1;
    if (message.role !== 'user') continue;
    for (const [, word = ''] of JSON.stringify(message).matchAll(/hear (\w+)/gu))
      heard.push(`${word} after ${answers}`);
  }
  return heard.length === 0 ? '' : `, heard ${heard.join(' ')}.`;
}

/** `spawned`: the id of the spawned subagent. */
function callOf(
  step: string,
  trip: string,
  spawned: string,
): { name: string; input: unknown } | null {
  if (step === 'hurry')
    return {
      name: 'send_to_subagent',
      input: { subagentId: spawned, content: HURRY, mode: 'interrupt' },
    };
  if (step === 'await') return { name: 'await_subagent', input: { subagentId: spawned } };
  if (step === 'look_up' || step === 'charge' || step === 'refund')
    return { name: step, input: { trip } };
  if (step === 'ask') return { name: 'ask_user', input: { question: 'Which one?' } };
  if (step === 'sleep') return { name: 'sleep_until', input: { minutes: SLEEP_MS / 60_000 } };
  if (step === 'input') return { name: 'request_input', input: { question: 'How much?' } };
  const [, name, task] = /^(guide|courier|spawn) (.*)$/u.exec(step) ?? [];
  if (name === undefined || task === undefined) return null;
  const script = task.replaceAll(' then ', ', ');
  if (name !== 'spawn') return { name, input: { task: `[trip ${trip}-${name}: ${script}]` } };
  const scouts = `[trip ${trip}-scout: ${script}]`;
  return { name: 'spawn_subagent', input: { task: scouts, contextMode: 'fresh' } };
}
