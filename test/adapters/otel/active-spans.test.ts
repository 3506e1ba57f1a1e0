// TRACED-JOURNAL-9: the spans of the app's functions are children of the work that called them, by text and by voice,
// for lead agents and subagents, and in every context of the session.

import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { tracedJournal } from '../../../src/adapters/otel/index.ts';
import {
  createRuntime,
  defineSubagent,
  defineTool,
  memoryJournal,
  TextSession,
  type SubagentConfig,
  createSubAgentTool,
} from '../../../src/index.ts';
import { agentSubagent, runSubagent } from '../../../src/entries/subagents.ts';
import { readNotes, scriptedModel, simulatedEnvironment } from '../../../src/testing/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { voiceTalk } from '../../support/voice-talk.ts';
import { turns } from '../../support/crashes.ts';
import { calls, say } from '../../support/subagent-runs.ts';
import { placesOf, probeOf, sdk, tracesIn, withContexts } from './support/traces.ts';

test('nests tool, model and approval spans under the span of their work in a text session', async () => {
  withContexts();
  const { tracerProvider, spans } = sdk();
  const probe = probeOf(tracerProvider);
  const asked = (name: string) => async () => {
    await probe(name);
    return 'seen';
  };
  const writer = defineSubagent({
    name: 'writer',
    instructions: 'You write.',
    outputSchema: z.object({ text: z.string() }),
    structured: 'off',
    tools: { jot: tool({ inputSchema: z.object({}), execute: asked('of jot') }) },
  });
  const researcher: SubagentConfig = {
    name: 'researcher',
    instructions: 'You research.',
    tools: {
      look: {
        description: 'Looks',
        inputSchema: z.object({}),
        needsApproval: async () => {
          await probe('of needsApproval');
          return true;
        },
        execute: asked('of look'),
        toModelOutput: async () => {
          await probe('of toModelOutput');
          return { type: 'text' as const, value: 'seen' };
        },
      },
      write: createSubAgentTool(writer, z.object({ what: z.string() })),
    },
  };
  const session = new TextSession({
    environment: nodeEnvironment(),
    journal: tracedJournal(memoryJournal(), { tracerProvider }),
    model: scriptedModel({
      scripts: [
        {
          when: 'You research',
          script: async ({ prompt }) => {
            await probe('of the model of researcher');
            const done = prompt.filter(({ role }) => role === 'tool').length;
            if (done === 0) return { calls: [{ name: 'look', input: {} }] };
            return done === 1
              ? { calls: [{ name: 'write', input: { what: 'it' } }] }
              : { text: 'Found.' };
          },
        },
        {
          when: 'You write',
          script: async ({ results }) => {
            await probe('of the model of writer');
            return results.length === 0
              ? { calls: [{ name: 'jot', input: {} }] }
              : { text: '{"text":"Ok."}' };
          },
        },
      ],
      otherwise: async ({ user, results }) => {
        await probe('of the model of lead');
        if (results.length === 1) return { calls: [{ name: 'research', input: {} }] };
        if (results.length > 1) return { text: 'I look.' };
        return readNotes(user).length > 0
          ? { text: 'It was found.' }
          : { calls: [{ name: 'time', input: {} }] };
      },
    }),
    agents: [
      {
        name: 'lead',
        instructions: 'You talk.',
        tools: [
          defineTool({
            name: 'time',
            description: 'The time',
            parameters: z.object({}).refine(async () => {
              await probe('of the check of time');
              return true;
            }),
            execute: asked('of time'),
          }),
          defineTool({
            name: 'research',
            description: 'Researches',
            parameters: z.object({}),
            execution: 'background',
          }),
        ],
      },
    ],
    subagentConfigs: {
      research: {
        ...researcher,
        createInstance: async () => {
          await probe('of createInstance');
          return researcher;
        },
      },
    },
  });
  session.parts.subscribe((part) => {
    if (part.type === 'question.asked')
      void session.answer(part.requestId, { optionId: 'approve' });
  });
  await session.start();
  // The user's request has a span in another trace, and no part of the session is under it.
  const request = tracerProvider.getTracer('web').startSpan('GET /chat');
  await context.with(trace.setSpan(ROOT_CONTEXT, request), async () => {
    await session.sendText('research it');
    await session.nextResult();
  });
  await session.close();
  const turn = 'invoke_agent lead < offstage.session';
  const work = `invoke_agent researcher < execute_tool research < ${turn}`;
  // After the approval, the work continues under the session.
  const later = 'invoke_agent researcher < offstage.session';
  expect(placesOf(spans()).toSorted()).toEqual(
    [
      `of the model of lead < chat scripted < ${turn}`,
      `of the check of time < execute_tool time < ${turn}`,
      `of time < execute_tool time < ${turn}`,
      `of createInstance < execute_tool research < ${turn}`,
      `of the model of researcher < chat scripted < ${work}`,
      `of needsApproval < ${work}`,
      `of look < execute_tool look < ${later}`,
      `of toModelOutput < execute_tool look < ${later}`,
      `of the model of researcher < chat scripted < ${later}`,
      `of the model of writer < chat scripted < invoke_agent writer < execute_tool write < ${later}`,
      `of jot < execute_tool jot < invoke_agent writer < execute_tool write < ${later}`,
    ].toSorted(),
  );
  expect(tracesIn(spans())).toBe(1);
});

test('nests model and tool spans under the span of their work in a voice session', async () => {
  withContexts();
  const { tracerProvider, spans } = sdk();
  const tracer = tracerProvider.getTracer('app');
  // Simulated time stops between two turns of the event loop.
  const probe = async (name: string): Promise<string> => {
    await Promise.resolve();
    tracer.startSpan(name).end();
    return 'seen';
  };
  const environment = simulatedEnvironment();
  const talk = voiceTalk({
    environment,
    runtime: createRuntime({
      environment,
      journal: tracedJournal(memoryJournal(), { tracerProvider }),
    }),
    tools: [
      defineTool({
        name: 'time',
        description: 'The time',
        parameters: z.object({}),
        execute: () => probe('of time'),
      }),
    ],
    subagents: {
      report: {
        script: turns(async () => {
          await probe('of the model of report');
          return calls(['look', {}, 'l1']);
        }, say('42')),
        config: {
          tools: { look: tool({ inputSchema: z.object({}), execute: () => probe('of look') }) },
        },
      },
    },
  });
  await talk.start();
  await talk.use('time');
  await talk.use('report');
  await environment.advance(5_000);
  await talk.close();
  const turn = 'invoke_agent lead < offstage.session';
  const work = `invoke_agent report < execute_tool report < ${turn}`;
  expect(placesOf(spans()).toSorted()).toEqual(
    [
      `of time < execute_tool time < ${turn}`,
      `of the model of report < chat scripted < ${work}`,
      `of look < execute_tool look < ${work}`,
    ].toSorted(),
  );
});

test("nests an SDK agent's `prepareStep`, `stopWhen` and `toolApproval` spans under the span of its work", async () => {
  withContexts();
  const { tracerProvider, spans } = sdk();
  const probe = probeOf(tracerProvider);
  const agent = {
    model: scriptedModel({
      otherwise: async ({ results }) =>
        results.length === 0 ? { calls: [{ name: 'look', input: {} }] } : { text: 'Found.' },
    }),
    instructions: 'You look.',
    tools: {
      look: tool({
        inputSchema: z.object({}),
        execute: async () => {
          await probe('of look');
          return 1;
        },
      }),
    },
    prepareStep: async () => {
      await probe('of prepareStep');
      return {};
    },
    stopWhen: async () => {
      await probe('of stopWhen');
      return false;
    },
    toolApproval: async () => {
      await probe('of toolApproval');
      return 'approved' as const;
    },
  };
  const { result } = runSubagent(agentSubagent({ name: 'finder', agent }), 'find', {
    runtime: createRuntime({
      environment: nodeEnvironment(),
      journal: tracedJournal(memoryJournal(), { tracerProvider }),
    }),
    id: 'run',
  });
  expect(await result).toMatchObject({ status: 'completed' });
  const work = 'invoke_agent finder < offstage.session';
  expect(placesOf(spans()).toSorted()).toEqual(
    [
      `of prepareStep < ${work}`,
      `of stopWhen < ${work}`,
      `of toolApproval < ${work}`,
      `of look < execute_tool look < ${work}`,
    ].toSorted(),
  );
});

test("runs functions in the caller's context when there is no provider", async () => {
  withContexts();
  const journal = tracedJournal(memoryJournal());
  const work = { scope: 's', unit: 'u' };
  const marked = trace.setSpanContext(ROOT_CONTEXT, {
    traceId: '1'.repeat(32),
    spanId: '1'.repeat(16),
    traceFlags: 1,
  });
  const seen = context.with(marked, () => journal.inSpanOf?.(work, () => context.active()));
  expect(seen).toBe(marked);
});
