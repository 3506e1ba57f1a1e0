// An agent that speaks the Agent Client Protocol, for 18-acp-agent.ts: it asks for permission, and then changes a
// file in its folder. Put in a real one: claude-agent-acp, codex-acp, gemini --acp, …

import { agent, methods, ndJsonStream } from '@agentclientprotocol/sdk';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { Readable, Writable } from 'node:stream';

let folder = '';

agent({ name: 'example-agent' })
  .onRequest(methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: {} }))
  .onRequest(methods.agent.session.new, ({ params }) => {
    folder = params.cwd;
    return { sessionId: `session-${process.pid}` };
  })
  .onRequest(methods.agent.session.prompt, async ({ params: { sessionId }, client }) => {
    const say = (text: string) =>
      client.notify(methods.client.session.update, {
        sessionId,
        update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } },
      });
    const text = 'Soup on Monday.\n';
    const { outcome } = await client.request(methods.client.session.requestPermission, {
      sessionId,
      toolCall: {
        toolCallId: 'write',
        title: 'Write menu.txt',
        kind: 'edit',
        status: 'pending',
        rawInput: { path: 'menu.txt', text },
      },
      options: [
        { optionId: 'always', name: 'Always allow', kind: 'allow_always' },
        { optionId: 'once', name: 'Allow', kind: 'allow_once' },
        { optionId: 'no', name: 'Reject', kind: 'reject_once' },
      ],
    });
    if (outcome.outcome !== 'selected' || outcome.optionId !== 'once') {
      await say('I left menu.txt as it is.');
      return { stopReason: 'end_turn' };
    }
    writeFileSync(join(folder, 'menu.txt'), text);
    await client.notify(methods.client.session.update, {
      sessionId,
      update: { sessionUpdate: 'tool_call_update', toolCallId: 'write', status: 'completed' },
    });
    await say('The menu says soup on Monday.');
    return { stopReason: 'end_turn' };
  })
  .connect(
    ndJsonStream(
      Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
      Readable.toWeb(process.stdin),
    ),
  );
