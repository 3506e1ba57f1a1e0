// Subagents, tools and waits that several cases use.

import { tool } from 'ai';
import { z } from 'zod';
import { defineTool } from '../../actors/session/lead/lead-tools.ts';
import type { LeadCall } from './lead-script.ts';
import type { CaseSubagent } from './session-of-case.ts';
import type { Talk } from './talk.ts';
import type { ToolDefinition } from '../../actors/contracts/lead-tool.ts';

/** Long enough to be interrupted. */
export const STORY = 'tell me the long story of the king who went to look for the end of the sea';

export const SALES = 'Sales are up by seven percent';
export const SALES_AT_LENGTH =
  'Sales are up by seven percent in the north and in the south, and down by two in the west';

export function call(name: string, input: LeadCall['input'] = {}): LeadCall {
  return { name, input };
}

/** A promise and its key. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  const { promise: opened, resolve } = Promise.withResolvers<void>();
  return { opened, open: () => resolve() };
}

/** Returns a subagent that works for this time, or until the gate opens, and then reports this text. */
export function working(text: string, until: number | Gate): Omit<CaseSubagent, 'pending'> {
  return {
    script: async () => {
      if (typeof until === 'number') return { text, delayMs: until };
      await until.opened;
      return { text };
    },
  };
}

/** A subagent that asks one question and reports its answer. */
export interface Asker {
  readonly subagent: CaseSubagent;
  /** The answers that it received: the option's id, or the words. */
  readonly got: string[];
}

export function asking(question: string, options: readonly string[], after: string): Asker {
  const got: string[] = [];
  return {
    got,
    subagent: {
      config: { interactive: true, maxSteps: 10 },
      script: ({ results }) => {
        const [answer] = results as { optionId?: string; userResponse?: string; error?: string }[];
        const words = answer?.optionId ?? answer?.userResponse;
        if (words !== undefined) {
          got.push(words);
          return { text: after };
        }
        const choices = options.map((id) => ({ id, label: id }));
        const input = { question, ...(choices.length > 0 && { options: choices }) };
        return { calls: [{ name: 'ask_user', input }] };
      },
    },
  };
}

export const RIDE_QUESTION = 'Which class shall it be, economy or premium';
export const BOOKED = 'Your ride is booked';

/** Returns the asking subagent that most cases use. */
export function ride(): Asker {
  return asking(RIDE_QUESTION, ['economy', 'premium'], BOOKED);
}

export const APPROVAL = 'May I do this: Pays, with pay?';
export const PAID = 'The ride is paid';

/** Returns a subagent that asks for consent and reports the answer. */
export function approving(): Asker {
  const got: string[] = [];
  return {
    got,
    subagent: {
      config: {
        interactive: true,
        maxSteps: 10,
        tools: {
          pay: tool({
            description: 'Pays',
            inputSchema: z.object({}),
            needsApproval: true,
            execute: () => {
              got.push('yes');
              return 'paid';
            },
          }),
        },
      },
      script: ({ results }) =>
        results.length > 0 ? { text: PAID } : { calls: [{ name: 'pay', input: {} }] },
    },
  };
}

/** Returns the same asking subagent with a last step of this duration. */
export function afterwards({ subagent, got }: Asker, delayMs: number): Asker {
  const { script } = subagent;
  return {
    got,
    subagent: {
      ...subagent,
      script: async (prompt, ...rest) => {
        const step = await (typeof script === 'function' ? script(prompt, ...rest) : script);
        return got.length > 0 ? { ...step, delayMs } : step;
      },
    },
  };
}

/** Waits until this question has been heard and can be answered. */
export function isOpen(talk: Talk, question = RIDE_QUESTION): Promise<void> {
  return talk.until(`the question ${JSON.stringify(question)} is open`, ({ questions }) =>
    questions.some((view) => view.question === question && view.state === 'open'),
  );
}

export function requestIdOf(talk: Talk, question = RIDE_QUESTION): string {
  return talk.state.questions.find((view) => view.question === question)?.requestId ?? '';
}

/** Waits until both sides are silent. */
export function isQuiet(talk: Talk): Promise<void> {
  return talk.until('nobody speaks', ({ floor }) => floor === 'nobody' && !talk.client.isPlaying);
}

/** Creates a tool that the lead model waits for, and counts its runs. */
export function lookUp(
  name: string,
  output: string,
  until?: Gate,
  more: Pick<ToolDefinition, 'detach' | 'pendingMessage'> = {},
) {
  const counted = { runs: 0 };
  const definition: ToolDefinition = defineTool({
    name,
    description: `Does ${name}`,
    parameters: z.looseObject({}),
    execute: async () => {
      counted.runs += 1;
      await until?.opened;
      return output;
    },
    ...more,
  });
  return { definition, counted };
}
