// Usage: npm run example examples/12-parent-and-child.ts
//
// The parent's tools, called as any host calls them: spawn, check, await, send, list and kill. The child reports
// progress, asks its parent a question (which wakes the parent's `await`) and returns its result. A refusal is returned
// as data.

import { createRuntime, createParentSubagentToolset } from 'offstage';
import { createSubagentService } from 'offstage/subagents';
import { scriptedModel, type Script } from 'offstage/testing';

/** Stands in for the child's model, with the tools that every spawned subagent has. */
const child: Script = ({ user, results }) => {
  const last = results.at(-1);
  if (user.includes('Watch')) return new Promise<never>(() => {});
  if (last === undefined)
    return {
      calls: [
        { name: 'report_progress', input: { update: 'Read 12 files', percentComplete: 50 } },
        { name: 'request_input', input: { question: 'The tests, too?', context: '30 more files' } },
      ],
    };
  const { response = 'no answer' } = JSON.parse(JSON.stringify(last)) as { response?: string };
  return {
    calls: [
      {
        name: 'complete_task',
        input: { result: `Three findings (${response})`, summary: 'Three findings' },
      },
    ],
  };
};

const service = createSubagentService({
  runtime: createRuntime(),
  model: scriptedModel({ otherwise: child }),
});
const toolset = createParentSubagentToolset({
  service,
  adapters: { 'code-reader': { name: 'code-reader', maxSteps: 10 } },
});

type Execute = (input: object, call: object) => Promise<Record<string, unknown>>;
let calls = 0;

/** Calls a tool by its name, as a tool registry does. */
async function execute(name: keyof typeof toolset, input: object) {
  console.log(`${name} ${JSON.stringify(input)}`);
  const call = { toolCallId: `call_${(calls += 1)}`, messages: [], context: {} };
  const output = await (toolset[name].execute as unknown as Execute)(input, call);
  console.log(`  ${JSON.stringify(output)}`);
  return output;
}

const { subagentId } = await execute('spawn_subagent', {
  task: 'Analyze the codebase and report findings',
  adapterName: 'code-reader',
  contextMode: 'fresh',
});

// Wakes when the child asks, not only when it finishes.
const { pendingRequest } = await execute('await_subagent', { subagentId });
await execute('check_subagent', { subagentId });
await execute('send_to_subagent', {
  subagentId,
  content: 'yes, all of them',
  inResponseTo: (pendingRequest as { messageId: string }).messageId,
});
await execute('await_subagent', { subagentId, timeoutMs: 60_000 });

// Another child, which would never finish.
const watcher = await execute('spawn_subagent', { task: 'Watch the logs', contextMode: 'fresh' });
await execute('list_subagents', {});
await execute('kill_subagent', { subagentId: watcher['subagentId'], reason: 'Seen enough' });
await execute('kill_subagent', { subagentId: watcher['subagentId'] });

// A call that cannot be executed returns an error with a code.
await execute('send_to_subagent', { subagentId, content: 'one more thing' });
await execute('check_subagent', { subagentId: 'nobody' });
await service.close();
