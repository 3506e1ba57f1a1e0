// An agent that speaks the Agent Client Protocol, for 18-acp-agent.ts, 22-agent-by-voice.ts and the voice demo. Its
// folder contains a menu, menu.txt. The agent reads the menu and asks for permission before it adds a dish. It
// understands only `Put soup on the menu.` Use a real agent instead: claude-agent-acp (in its `default` mode, in which
// it asks), codex-acp, gemini --acp, …

import { agent, methods, ndJsonStream } from '@agentclientprotocol/sdk';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { Readable, Writable } from 'node:stream';

let folder = '';

agent({ name: 'example-agent' })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: 1,
    agentCapabilities: { sessionCapabilities: { resume: {} } },
  }))
  .onRequest(methods.agent.session.new, ({ params }) => {
    folder = params.cwd;
    return { sessionId: `session-${process.pid}` };
  })
  // The agent's only memory is its folder. A client that resumes a session repeats the task.
  .onRequest(methods.agent.session.resume, ({ params }) => {
    folder = params.cwd;
    return {};
  })
  .onRequest(methods.agent.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
    const answer = async (text: string) => {
      const content = { type: 'text' as const, text };
      const update = { sessionUpdate: 'agent_message_chunk' as const, content };
      await client.notify(methods.client.session.update, { sessionId, update });
      return { stopReason: 'end_turn' as const };
    };
    const menu = dishesIn(folder);
    const dish = wantedIn(prompt.map((part) => (part.type === 'text' ? part.text : '')).join('\n'));
    if (dish === null)
      return answer(menu.length === 0 ? 'The menu is empty.' : `The menu: ${menu.join(', ')}.`);
    if (menu.includes(dish)) return answer(`${dish} is on the menu.`);
    const { outcome } = await client.request(methods.client.session.requestPermission, {
      sessionId,
      toolCall: {
        toolCallId: 'write',
        title: 'Add to menu.txt',
        kind: 'edit',
        status: 'pending',
        rawInput: { path: 'menu.txt', line: dish },
      },
      options: [
        { optionId: 'once', name: 'Approve', kind: 'allow_once' },
        { optionId: 'no', name: 'Decline', kind: 'reject_once' },
      ],
    });
    if (outcome.outcome !== 'selected' || outcome.optionId !== 'once')
      return answer('I left the menu as it is.');
    appendFileSync(join(folder, 'menu.txt'), `${dish}\n`);
    await client.notify(methods.client.session.update, {
      sessionId,
      update: { sessionUpdate: 'tool_call_update', toolCallId: 'write', status: 'completed' },
    });
    return answer(`${dish} is on the menu.`);
  })
  .connect(
    ndJsonStream(
      Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
      Readable.toWeb(process.stdin),
    ),
  );

function dishesIn(path: string): readonly string[] {
  const file = join(path, 'menu.txt');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
}

/**
 * Returns the dish that "Put soup on the menu" names in the last line of the prompt, which is the task; null if there
 * is none.
 */
function wantedIn(prompt: string): string | null {
  const task = prompt.trimEnd().split('\n').at(-1) ?? '';
  const wish = /\b(?:put|add) (?:an? |some |the )?([\p{L} '’-]{1,60}?) (?:on|to) the menu\b/iu;
  const dish = wish.exec(task)?.[1];
  return dish === undefined ? null : dish.charAt(0).toUpperCase() + dish.slice(1);
}
