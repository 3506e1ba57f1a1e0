// The worker on Restate: both manners, in one process.

import * as restate from '@restatedev/restate-sdk';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { restateRunWorkflow } from '../../../src/adapters/restate/index.ts';
import { jobWorker, runWorker } from '../../../src/entries/jobs.ts';
import { bareResult, bareThink, charge, lookUp, rides, ridesModel, WATCHED } from './work.js';

const { PORT } = process.env;
const environment = nodeEnvironment();
const configs = { rides };

/** The loop as a workflow of the SDK: each step is a `ctx.run`, the question a promise. */
const bare = restate.workflow({
  name: 'bare_rides',
  options: { workflowRetention: 604_800_000 },
  handlers: {
    run: async (ctx, task) => {
      const messages = [{ role: 'user', content: task }];
      for (let step = 1; ; step += 1) {
        const thought = await ctx.run(`model ${step}`, () => bareThink(messages));
        messages.push(...thought.messages);
        if (thought.calls.length === 0) {
          if (task.includes(WATCHED)) await ctx.promise('question').resolve('');
          return thought.text;
        }
        for (const call of thought.calls) {
          if (call.toolName === 'ask_user') {
            await ctx.promise('question').resolve(call.input.question);
            messages.push(bareResult(call, await ctx.promise('answer')));
          } else {
            const execute = call.toolName === 'charge' ? charge : lookUp;
            messages.push(
              bareResult(call, await ctx.run(call.toolName, () => execute(call.input))),
            );
          }
        }
      }
    },
    question: (ctx) => ctx.promise('question').get(),
    answer: (ctx, text) => ctx.promise('answer').resolve(text),
  },
});

await restate.serve({
  services: [
    bare,
    restateRunWorkflow({
      restate,
      handler: runWorker({
        environment,
        configs,
        steps: jobWorker({ environment, configs, model: ridesModel }),
      }),
    }),
  ],
  port: Number(PORT),
});
