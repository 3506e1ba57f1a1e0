// The schemas of the arguments of the parent's tools, as a model writes them.

import { z } from 'zod';

const id = z.string().min(1).max(200);
const name = z.string().min(1).max(200);
const words = z.string().trim().min(1).max(100_000);
const milliseconds = z.number().int().positive().max(86_400_000);
const subagentId = id.describe('The subagentId that spawn_subagent returned');
const names = z.array(name).max(200);

export const spawnInput = z.object({
  task: words.describe('What the subagent shall do: everything that it has to know'),
  adapterName: name.optional().describe('The kind of subagent; default: the usual one'),
  providerConfigId: name.optional(),
  harnessId: name.optional(),
  model: name.optional().describe('The name of another model'),
  contextMode: z
    .enum(['fork', 'fresh'])
    .default('fork')
    .describe('fork: it knows this conversation so far; fresh: only the task'),
  tools: names.optional().describe('The only tools that it gets, out of yours; [] is none'),
  disallowedTools: names.optional().describe('Tools that it and its own subagents do not get'),
  systemPrompt: words.optional().describe('Instructions beside its own'),
  maxDepth: z.number().int().min(1).max(100).optional().describe('How deep subagents may nest'),
  responseSchema: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('JSON Schema of the result, if it shall be JSON'),
  executionTargetId: name.optional(),
  workstreamId: id.optional().describe('Subagents of one workstream see each other'),
});

export const checkInput = z.object({ subagentId });

export const sendInput = z.object({
  subagentId,
  content: words.describe('The message, or the answer'),
  inResponseTo: id
    .optional()
    .describe('The messageId of its pending request, if this is the answer to it'),
  mode: z
    .enum(['queue', 'steer', 'interrupt'])
    .default('steer')
    .describe(
      'queue: it reads this when it would have ended; steer: at its next step; interrupt: at once',
    ),
});

export const awaitInput = z.object({
  subagentId: subagentId.optional(),
  subagentIds: z.array(id).min(1).max(100).optional().describe('Several, instead of one'),
  mode: z
    .enum(['any', 'all'])
    .default('all')
    .describe('Of several: until the first one, or all of them, ended or need input'),
  timeoutMs: milliseconds.optional().describe('At most so long; default 300000'),
});

export const killInput = z.object({
  subagentId,
  reason: z.string().trim().min(1).max(1000).default('Killed by parent'),
});

export const cancelInput = z.object({
  subagentId,
  reason: z.string().trim().min(1).max(1000).default('Cancelled by parent'),
});

export const listInput = z.object({
  includeEnded: z.boolean().default(false).describe('Also those that have ended'),
});

export type SpawnInput = z.infer<typeof spawnInput>;
export type AwaitInput = z.infer<typeof awaitInput>;
