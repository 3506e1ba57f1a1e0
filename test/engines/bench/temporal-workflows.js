// The workflows on Temporal: both manners.

import * as workflow from '@temporalio/workflow';
import { runWorkflow } from '../../../src/adapters/temporal/workflow.ts';

export const offstageRun = runWorkflow(workflow);

const { think, lookUp } = workflow.proxyActivities({ startToCloseTimeout: 60_000 });
const { charge } = workflow.proxyActivities({
  startToCloseTimeout: 60_000,
  retry: { maximumAttempts: 1 },
});

const result = ({ toolCallId, toolName }, value) => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId, toolName, output: { type: 'json', value } }],
});

/** The loop as a workflow of the SDK: each step is an activity, the question an update for each side. */
export async function bareRides(task) {
  let question = null;
  let answer = null;
  workflow.setHandler(workflow.defineUpdate('question'), async () => {
    await workflow.condition(() => question !== null);
    return question;
  });
  workflow.setHandler(workflow.defineUpdate('answer'), (text) => {
    answer = text;
  });
  const messages = [{ role: 'user', content: task }];
  for (;;) {
    const thought = await think(messages);
    messages.push(...thought.messages);
    if (thought.calls.length === 0) {
      question ??= '';
      await workflow.condition(workflow.allHandlersFinished);
      return thought.text;
    }
    for (const call of thought.calls) {
      if (call.toolName === 'ask_user') {
        ({ question } = call.input);
        await workflow.condition(() => answer !== null);
        messages.push(result(call, answer));
      } else {
        const execute = call.toolName === 'charge' ? charge : lookUp;
        messages.push(result(call, await execute(call.input)));
      }
    }
  }
}
