// Usage: npm run example examples/05-relay.ts
//
// A relay is a subagent that passes its task to an external agent and the agent's questions to the user. Two tasks run
// at once. `createInstance` gives each of them its own relay, and `dispose` always closes it. The external agent is a
// stand-in; use the SDK of your own agent instead.

import { tool } from 'ai';
import { z } from 'zod';
import { defineTool, TextSession, type SubagentConfig } from 'offstage';
import { readTask, scriptedModel, type Script } from 'offstage/testing';
import { scriptedLead } from './scripted-lead.ts';

/** Stands in for a coding agent: it remembers its task, asks a question, and must be closed. */
class CodingSession {
  static #count = 0;
  readonly id = `coding_${(CodingSession.#count += 1)}`;
  #task = '';

  async start(task: string) {
    this.#task = task;
    return { status: 'needs_input', text: `${task}: shall I run the tests, too?` };
  }

  async respond(response: string) {
    return { status: 'completed', text: `${this.#task}: done (tests: ${response})` };
  }

  async abort() {
    console.log(`${this.id} (${this.#task}) has ended`);
  }
}

function createRelay(): SubagentConfig {
  const sessions = new Map<string, CodingSession>();
  return {
    name: 'coding_relay',
    instructions: 'Hand the task to the coding agent; its questions go to the user.',
    interactive: true,
    maxSteps: 20,
    tools: {
      agent_start: tool({
        description: 'Start the coding agent on a task',
        inputSchema: z.object({ task: z.string() }),
        execute: async ({ task }) => {
          const coding = new CodingSession();
          sessions.set(coding.id, coding);
          return { sessionId: coding.id, ...(await coding.start(task)) };
        },
      }),
      agent_respond: tool({
        description: 'Answer a question of the coding agent',
        inputSchema: z.object({ sessionId: z.string(), response: z.string() }),
        execute: async ({ sessionId, response }) =>
          (await sessions.get(sessionId)?.respond(response)) ?? { status: 'unknown_session' },
      }),
    },
    createInstance: createRelay,
    dispose: async () => {
      await Promise.allSettled([...sessions.values()].map((coding) => coding.abort()));
    },
  };
}

/** Stands in for a model with these instructions. */
const relayScript: Script = ({ results: [last], prompt }) => {
  const { status, text, userResponse } = (last ?? {}) as Record<string, string>;
  if (last === undefined)
    return { calls: [{ name: 'agent_start', input: { ...readTask(prompt)?.arguments } }] };
  if (status === 'needs_input') return { calls: [{ name: 'ask_user', input: { question: text } }] };
  if (userResponse === undefined) return { text: text ?? 'It did not say.' };
  const [sessionId] = /coding_\d+/.exec(JSON.stringify(prompt)) ?? [];
  return { calls: [{ name: 'agent_respond', input: { sessionId, response: userResponse } }] };
};

const askCoder = defineTool({
  name: 'ask_coder',
  description: 'Let the coding agent do something in the code base',
  parameters: z.object({ task: z.string() }),
  execution: 'background',
  pendingMessage: 'I am on it.',
});

const session = new TextSession({
  model: scriptedModel({
    agents: { ask_coder: relayScript },
    otherwise: scriptedLead(() =>
      ['Fix the auth bug', 'Rename the login page'].map((task) => ({
        name: 'ask_coder',
        input: { task },
      })),
    ),
  }),
  agents: [{ name: 'lead', instructions: 'You talk to the user.', tools: [askCoder] }],
  subagentConfigs: { ask_coder: createRelay() },
});

session.parts.subscribe((part) => {
  if (part.type === 'text.done') console.log(`lead: ${part.text}`);
  if (part.type === 'question.asked') void answer(part.question);
});

/** The user answers the first question and cancels the other subagent. */
async function answer(question: string): Promise<void> {
  console.log(`coding_relay asks: ${question}`);
  if (question.startsWith('Fix')) return session.sendText('yes');
  const asking = session.subagents.list().find(({ state }) => state === 'waiting_for_input');
  console.log(`user cancels it: ${session.subagents.cancel(asking?.id ?? '')}`);
}

await session.start();
console.log('user: Fix the auth bug, and rename the login page.');
await session.sendText('Fix the auth bug, and rename the login page.');
await session.nextResult();
await session.close();
