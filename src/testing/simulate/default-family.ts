// The subagents of a subagent in the default app: one kind that its call waits for, and one that it starts,
// messages, asks, awaits and ends. They ask the user, and their parent.

import { z } from 'zod';
import {
  createSubAgentTool,
  subAgentTools,
  type SubAgentConfig,
} from '../../actors/subagents/toolsets/sub-agent-tool.ts';
import { createParentSubagentToolset } from '../../actors/subagents/toolsets/parent-toolset.ts';
import type { SubagentConfig } from '../../actors/contracts/config.ts';
import type { AppContext } from './log/app.ts';

type Tools = NonNullable<SubagentConfig['tools']>;

const topic = z.object({ topic: z.string() });

/** Gives a subagent subagents of its own, with these tools and their own. */
export function withFamily(tools: Tools, { simulated }: AppContext): Tools {
  const tasting: SubAgentConfig = {
    name: 'tasting',
    instructions: 'You try something, and say how it was.',
    outputSchema: z.object({ finding: z.string(), stars: z.number().int().min(1).max(5) }),
    tools,
    interactive: true,
    maxSteps: 4,
    inputTimeout: 60_000,
    toolTimeout: 20_000,
  };
  const scout: Partial<SubagentConfig> = {
    name: 'scout',
    instructions: 'You look around.',
    interactive: true,
    maxSteps: 5,
    inputTimeout: 60_000,
    toolTimeout: 20_000,
  };
  const { spawn_subagent, await_subagent, send_to_subagent, check_subagent, cancel_subagent } =
    createParentSubagentToolset({ agent: simulated(scout) });
  return {
    ...tools,
    spawn_subagent,
    await_subagent,
    send_to_subagent,
    check_subagent,
    cancel_subagent,
    ...subAgentTools(createSubAgentTool(simulated(tasting), topic)),
  };
}
