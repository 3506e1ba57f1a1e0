// The work of the bench of engines, in the manner of Offstage and in that of an engine's own SDK: four model calls, a
// look-up, a question to the user, a charge. The model takes no time.

import { generateText, tool } from 'ai';
import { z } from 'zod';
import { model, call, stepsDone, text } from '../../../bench/lib/workload.ts';

export const INSTRUCTIONS =
  'You book rides. Look up what there is, ask which one, then charge the card.';
export const TASK =
  'A ride to the airport for two people with three suitcases, at nine in the morning.';
export const QUESTION = 'The cheap one at 31 dollars, or the fast one at 48 dollars?';
export const ANSWER = 'The cheap one, please.';
const RIDES = [
  { name: 'cheap', dollars: 31, minutes: 44 },
  { name: 'fast', dollars: 48, minutes: 29 },
];
const BOOKED = 'The cheap ride is booked for nine: 31 dollars.';

/** In this task the model does not ask. */
export const SILENT = 'Do not ask.';
/** The bare workflow of this task tells a program that waits for a question that there is none. */
export const WATCHED = 'Somebody waits for a question.';
const lookItUp = () => call('look_up', { to: 'airport', at: '09:00' });
const ask = () => call('ask_user', { question: QUESTION });
/** The step after the answer says when it was begun: wall time in milliseconds, the same in all processes. */
const pay = () =>
  call('charge', { dollars: 31, begunAt: performance.timeOrigin + performance.now() });
const plans = { asking: [lookItUp, ask, pay], silent: [lookItUp, pay] };

export const ridesModel = model((prompt) => {
  const whole = JSON.stringify(prompt);
  const plan = whole.includes(SILENT) ? plans.silent : plans.asking;
  const [, begunAt = ''] = /"begunAt":([\d.]+)/u.exec(whole) ?? [];
  return [plan[stepsDone(prompt)]?.() ?? text(`${BOOKED} begunAt ${begunAt}`)];
});

export const lookUp = async () => RIDES;
export const charge = async ({ dollars }) => ({ charged: dollars });

const schemas = {
  look_up: z.object({ to: z.string(), at: z.string() }),
  charge: z.object({ dollars: z.number(), begunAt: z.number() }),
  ask_user: z.object({ question: z.string() }),
};

/** As an app writes it for Offstage. */
export const rides = {
  name: 'rides',
  instructions: INSTRUCTIONS,
  runs: 'jobs',
  interactive: true,
  inputTimeout: 600_000,
  tools: {
    look_up: {
      ...tool({ description: 'Looks up rides', inputSchema: schemas.look_up, execute: lookUp }),
      idempotent: true,
    },
    charge: tool({ description: 'Charges the card', inputSchema: schemas.charge, execute: charge }),
  },
};

const bareTools = {
  look_up: tool({ description: 'Looks up rides', inputSchema: schemas.look_up }),
  charge: tool({ description: 'Charges the card', inputSchema: schemas.charge }),
  ask_user: tool({ description: 'Asks the user', inputSchema: schemas.ask_user }),
};

/** One model call with the AI SDK, as a step of an engine: plain JSON in and out. */
export async function bareThink(messages) {
  const {
    response,
    toolCalls,
    text: words,
  } = await generateText({
    model: ridesModel,
    instructions: INSTRUCTIONS,
    messages,
    tools: bareTools,
  });
  return JSON.parse(JSON.stringify({ messages: response.messages, calls: toolCalls, text: words }));
}

export const bareResult = ({ toolCallId, toolName }, value) => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId, toolName, output: { type: 'json', value } }],
});
