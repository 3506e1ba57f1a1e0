// The agents of the suite of homes. A user requests an errand, such as `[errand a1: look_up, ask, charge]`, and a
// subagent runs it step by step. It reports each model call and tool call to the suite, which counts the call and may
// delay it.

import { tool } from 'ai';
import { z } from 'zod';
import type { SubagentConfig } from '../../../src/actors/contracts/config.ts';
import { defineTool } from '../../../src/actors/session/lead/lead-tools.ts';
import type { LeadAgent } from '../../../src/actors/session/lead/lead-agent.ts';
import type { TextSessionOptions } from '../../../src/index.ts';
import {
  scriptedModel,
  type ScriptedLanguageModel,
} from '../../../src/testing/doubles/scripted-model.ts';
import type { Tell } from '../runs/travel-agent.ts';

/** The options of a home's `TextSession`. */
export interface HomeConformanceAgents {
  readonly model: ScriptedLanguageModel;
  readonly agents: readonly [LeadAgent];
  readonly subagentConfigs: Readonly<Record<string, SubagentConfig>>;
  readonly reach: NonNullable<TextSessionOptions['reach']>;
}

/** The length of a result from `fill` in characters, slightly below the limit for tool results. */
export const FILL_CHARS = 240_000;
/** The time limit for a question from `hurry`. */
const HURRY_MS = 3_000;
/** The time after which the result of an errand whose name starts with `mail-` is sent to a user who has left. */
const UNHEARD_MS = 1_000;

const ERRAND = /\[errand ([\w-]+): ([^[\]]*)\]/gu;

/** @param tell Reports a call from the home's process to the suite. */
export function homeConformanceAgents(tell: Tell): HomeConformanceAgents {
  const input = z.object({ errand: z.string() });
  const does = (what: string) => async (given: { readonly errand: string }) => {
    await tell(`${given.errand}/${what}`);
    return { did: what };
  };
  const runner = {
    name: 'runner',
    instructions: 'You run errands.',
    context: 'none',
    interactive: true,
    maxSteps: 20,
    tools: {
      look_up: {
        ...tool({ description: 'Looks up', inputSchema: input, execute: does('look_up') }),
        idempotent: true,
      },
      charge: tool({
        description: 'Charges the card',
        inputSchema: input,
        execute: does('charge'),
      }),
      fill: {
        ...tool({
          description: 'Reads a long text',
          inputSchema: input,
          execute: async () => 'x'.repeat(FILL_CHARS),
        }),
        idempotent: true,
      },
    },
  } as const;
  const parameters = z.object({ task: z.string() });
  const errandTool = (name: string) =>
    defineTool({
      name,
      description: 'Runs an errand for the user',
      parameters,
      execution: 'background',
      pendingMessage: 'On it.',
    });
  const model = scriptedModel({
    async otherwise({ prompt, results, system }) {
      const whole = JSON.stringify(prompt);
      if (system.includes('You run errands')) {
        const [, errand = '', script = ''] = [...whole.matchAll(ERRAND)][0] ?? [];
        const turn = prompt.filter(({ role }) => role === 'assistant').length;
        await tell(`${errand}/model-${turn + 1}`);
        const step = script.split(', ')[turn];
        if (step === undefined || step === '') {
          const read = whole.replaceAll(/[^x]/gu, '').length;
          const what = JSON.stringify(results[0] ?? null)
            .replaceAll('"', '')
            .slice(0, 100);
          return { text: `Finished ${errand}: ${what}, having read ${read}` };
        }
        if (step === 'ask')
          return { calls: [{ name: 'ask_user', input: { question: `Which one, ${errand}?` } }] };
        const [name = '', times = '1'] = step.split(' ');
        return {
          calls: Array.from({ length: Number(times) }, (_, at) => ({
            id: `call_${turn}_${at}`,
            name,
            input: { errand },
          })),
        };
      }
      const of = (role: string) =>
        JSON.stringify(prompt.filter((message) => message.role === role));
      const made = of('assistant');
      const last = prompt.at(-1);
      // The results that the lead agent must report now: new ones, and those that an interrupted reply did not report.
      const read = [...whole.matchAll(/Finished ([\w-]+): (.*?), having read (\d+)/gu)];
      const isLast = (finished: string): boolean =>
        last?.role !== 'assistant' && JSON.stringify(last?.content ?? '').includes(finished);
      const untold = new Map(
        read
          .filter(([finished, id]) => isLast(finished) || !made.includes(`Told ${id} `))
          .map(([, id, what, length]) => [id, `Told ${id} ${what} ${length}`]),
      );
      const wishes = prompt.flatMap(({ role, content }) => {
        const words = role === 'user' ? JSON.stringify(content) : '';
        const name = words.includes('in a hurry') ? 'hurry' : 'run';
        return [...words.matchAll(ERRAND)].map(([task]) => ({ name, input: { task } }));
      });
      const wish = wishes.find(({ input: { task } }) => !made.includes(task));
      if (untold.size > 0 || wish)
        return { text: [...untold.values()].join('; '), calls: wish ? [wish] : [] };
      if (last?.role === 'tool') return { text: 'On it.' };
      return { text: 'All right.' };
    },
  });
  return {
    model,
    agents: [
      {
        name: 'lead',
        instructions: 'You talk to the user.',
        tools: [errandTool('run'), errandTool('hurry')],
      },
    ],
    subagentConfigs: {
      run: { ...runner, inputTimeout: 3_600_000 },
      hurry: { ...runner, inputTimeout: HURRY_MS },
    },
    reach: {
      channels: {
        mail: {
          idempotent: false,
          async send({ text }) {
            const [, errand] = /Finished (mail-[\w-]+)/u.exec(text) ?? [];
            if (errand !== undefined) await tell(`${errand}/send`);
            return 'sent';
          },
        },
      },
      steps: [{ afterUnheardMs: UNHEARD_MS, by: 'mail' }],
    },
  };
}
