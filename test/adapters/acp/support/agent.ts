// An ACP v1 agent on the official SDK, without a model: it performs the acts in its prompts. Its sessions are files in
// the folder STATE, so that another process can resume them.

import {
  agent,
  methods,
  ndJsonStream,
  RequestError,
  type SessionNotification,
} from '@agentclientprotocol/sdk';
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { actsIn, perform } from '../../../../src/testing/doubles/relay-acts.ts';

const STATE = process.env['STATE'] ?? process.cwd();
const fileOf = (id: string): string => join(STATE, `${id.replaceAll(/[^\w-]/g, '_')}.json`);
const checkKnown = (id: string): void => {
  if (!existsSync(fileOf(id))) throw RequestError.resourceNotFound(id);
};
const log = (what: string, detail: string): void => {
  const path = process.env['LOG'];
  if (path !== undefined) appendFileSync(path, `${what} ${detail}\n`);
};
const turns = new Map<string, AbortController>();
let isDeaf = false;
let sessions = 0;

process.on('SIGTERM', () => {
  if (!isDeaf) process.exit(0);
});

const app = agent({ name: 'test-agent' })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: 1,
    agentCapabilities: {
      loadSession: true,
      ...(process.env['LOADS'] === '1' ? {} : { sessionCapabilities: { resume: {} } }),
    },
    authMethods: [],
  }))
  .onRequest(methods.agent.session.new, ({ params }) => {
    log('traced', `env ${process.env['TRACEPARENT']}`);
    log('traced', `new ${String(params._meta?.['traceparent'])}`);
    sessions += 1;
    const sessionId = `s${process.pid}-${sessions}`;
    writeFileSync(fileOf(sessionId), '[]');
    return { sessionId };
  })
  .onRequest(methods.agent.session.resume, ({ params }) => {
    checkKnown(params.sessionId);
    return {};
  })
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    checkKnown(params.sessionId);
    await client.notify(methods.client.session.update, {
      sessionId: params.sessionId,
      update: {
        sessionUpdate: 'agent_message_chunk',
        content: { type: 'text', text: 'An earlier turn.' },
      },
    });
    return {};
  })
  .onNotification(methods.agent.session.cancel, ({ params }) => {
    if (!isDeaf) turns.get(params.sessionId)?.abort();
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
    const { sessionId } = params;
    log('traced', `prompt ${String(params._meta?.['traceparent'])}`);
    const turn = new AbortController();
    turns.set(sessionId, turn);
    const update = (changed: SessionNotification['update']) =>
      client.notify(methods.client.session.update, { sessionId, update: changed });
    const text = params.prompt.find((part) => part.type === 'text')?.text ?? '';
    const own = (toolId: string): string => `${turns.size}-${toolId}`;
    try {
      const reason = await perform(actsIn(text), {
        cancelled: turn.signal,
        say: (words) =>
          update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: words } }),
        progress: (content) =>
          update({
            sessionUpdate: 'plan',
            entries: [{ content, priority: 'high', status: 'in_progress' }],
          }),
        toolStarted: (toolId, { title, kind, input }) =>
          update({
            sessionUpdate: 'tool_call',
            toolCallId: own(toolId),
            title,
            kind: kind as 'edit',
            status: 'in_progress',
            rawInput: input,
          }),
        toolEnded: (toolId, ok, rawOutput) =>
          update({
            sessionUpdate: 'tool_call_update',
            toolCallId: own(toolId),
            status: ok ? 'completed' : 'failed',
            rawOutput,
          }),
        permission: async (toolId, { title, kind, input }) => {
          const { outcome } = await client.request(
            methods.client.session.requestPermission,
            {
              sessionId,
              toolCall: {
                toolCallId: own(toolId),
                title,
                kind: kind as 'edit',
                status: 'pending',
                rawInput: input,
              },
              options: [
                { optionId: 'always', name: 'Always allow', kind: 'allow_always' },
                { optionId: 'yes', name: 'Allow once', kind: 'allow_once' },
                { optionId: 'never', name: 'Never', kind: 'reject_always' },
                { optionId: 'no', name: 'Reject', kind: 'reject_once' },
              ],
            },
            { cancellationSignal: turn.signal },
          );
          if (outcome.outcome === 'cancelled') return 'cancelled';
          const isLasting = outcome.optionId === 'always';
          const given = isLasting || outcome.optionId === 'yes' ? 'permitted' : 'denied';
          log(isLasting ? 'lasting' : given, title);
          if (isLasting)
            await update({
              sessionUpdate: 'agent_message_chunk',
              content: { type: 'text', text: 'always ' },
            });
          return given;
        },
        question: async (message, options) => {
          const answer = await client.request(
            methods.client.elicitation.create,
            {
              sessionId,
              mode: 'form',
              message,
              requestedSchema: {
                type: 'object',
                properties: {
                  question_0:
                    options.length > 0
                      ? {
                          type: 'string',
                          oneOf: options.map(({ id, label }) => ({ const: id, title: label })),
                        }
                      : { type: 'string' },
                },
                required: ['question_0'],
              },
            },
            { cancellationSignal: turn.signal },
          );
          if (answer.action !== 'accept') return null;
          const { content } = answer as { readonly content?: Readonly<Record<string, unknown>> };
          const given = String(content?.['question_0']);
          log('answer', `${message} => ${given}`);
          return options.length > 0 ? { optionId: given, text: given } : { text: given };
        },
        deaf: () => {
          isDeaf = true;
          // The agent does not exit when its input ends either.
          setInterval(() => {}, 60_000);
        },
        die: () => process.exit(3),
        garbage: () => {
          process.stdout.write('a stray line of the agent\n{"half": \n');
        },
      });
      if (reason === 'failed') throw RequestError.internalError({ reason: 'as it was told' });
      const stopReason = {
        completed: 'end_turn',
        cancelled: 'cancelled',
        refused: 'refusal',
        limit: 'max_tokens',
      } as const;
      return { stopReason: stopReason[reason] };
    } catch (error) {
      if (turn.signal.aborted) return { stopReason: 'cancelled' };
      throw error;
    } finally {
      if (turns.get(sessionId) === turn) turns.delete(sessionId);
    }
  });

app.connect(
  ndJsonStream(
    Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
    Readable.toWeb(process.stdin),
  ),
);
