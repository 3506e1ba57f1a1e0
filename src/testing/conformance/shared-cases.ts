// The subagents, tools and waits that several cases share.

import { tool } from 'ai';
import { z } from 'zod';
import { defineTool } from '../../actors/session/lead/lead-tools.ts';
import type { Script } from '../doubles/scripted-model.ts';
import type { LeadCall } from './lead-script.ts';
import type { CaseSubagent } from './session-of-case.ts';
import type { Talk } from './talk.ts';
import type { ToolDefinition } from '../../actors/contracts/lead-tool.ts';

/** This text is long enough to be interrupted. */
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

/** Returns a subagent that works for this time (or until the gate opens) and then reports this text. */
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
  /** The answers that the subagent has received: the id of the option, or the text. */
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

/** Returns the subagent that asks in most cases. */
export function ride(): Asker {
  return asking(RIDE_QUESTION, ['economy', 'premium'], BOOKED);
}

export const APPROVAL = 'Pays, with pay: may I do that?';
export const PAID = 'The ride is paid';

/** Returns a subagent that asks for consent and then reports the answer. */
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

/** Returns the same subagent with a last step of this duration. */
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

/** Waits until the user and the model are silent. */
export function isQuiet(talk: Talk): Promise<void> {
  return talk.until('nobody speaks', ({ floor }) => floor === 'nobody' && !talk.client.isPlaying);
}

/** Creates a tool that the lead model waits for, and counts how often it runs. */
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

export const PLACE = 'You are in Berlin';
export const WHERE = 'where am I';

/** Creates a tool that runs on one of the user's pages. */
export function atPages(more: Pick<ToolDefinition, 'absent'> = {}): ToolDefinition {
  return defineTool({
    name: 'locate',
    description: 'Finds where the user is',
    parameters: z.looseObject({}),
    runsAt: 'client',
    resultSchema: z.string(),
    ...more,
  });
}

/** Waits until the pages are offered a call. Returns its id. */
export async function callAtPages(talk: Talk): Promise<string> {
  const list = () => talk.session.clientCalls.list();
  await talk.until('a page is asked', () => list().length === 1);
  return list()[0]?.id ?? '';
}

/** Claims the offered call like a page that has just connected, and runs it. */
export async function runAtPage(talk: Talk, page: string): Promise<void> {
  const id = await callAtPages(talk);
  const { clientCalls } = talk.session;
  talk.check(`${page} may take it`, await clientCalls.claim(id, page));
  talk.check('its result is taken', await clientCalls.answer(id, page, { output: PLACE }));
}

export const FIRST_PIECE = 'write to Anna';
export const REST_OF_IT = 'that I am late and copy Bob';
export const WRITTEN = 'The mail is sent';

/** A request that the user makes in two pieces, and the task that carries it out. */
export function inPieces() {
  const ready = gate();
  const whole = `${FIRST_PIECE} ${REST_OF_IT}`;
  let read = '';
  const options = {
    calls: {
      [FIRST_PIECE]: [call('write', { request: FIRST_PIECE })],
      [REST_OF_IT]: [call('write', { request: whole })],
    },
    subagents: {
      write: {
        pending: 'I write it',
        script: async ({ prompt }: Parameters<Script>[0]) => {
          read = JSON.stringify(prompt);
          await ready.opened;
          return { text: WRITTEN };
        },
      },
    },
  };
  return {
    ...options,
    /** The user starts a request, and a task works on it. */
    begin: async (talk: Talk) => {
      await talk.says(FIRST_PIECE);
      await talk.until('the task works', () => read.includes(FIRST_PIECE));
      await talk.pass(1500);
    },
    /** The user says the rest, and the task reads it before it ends. */
    goOn: async (talk: Talk) => {
      await talk.says(REST_OF_IT);
      await talk.until('the task reads the rest', () => read.includes(REST_OF_IT));
      await isQuiet(talk);
      ready.open();
      await talk.isDelivered(WRITTEN);
    },
    outcome: (talk: Talk) => {
      talk.check('one task did it', talk.state.subagents.length === 1);
      talk.check('it read the rest once', read.split(REST_OF_IT).length === 2);
    },
  };
}
