// The demo's agents, for the stages in simulated time.

import { leadAgent } from '../../../examples/voice-demo/agents/lead-agent.ts';
import { subagentsIn } from '../../../examples/voice-demo/agents/subagents.ts';
import { createWorkshop } from '../../../examples/voice-demo/agents/workshop.ts';
import { createWorld } from '../../../examples/voice-demo/agents/world.ts';
import { ruleModel } from '../../../examples/voice-demo/rules/rule-model.ts';
import type { Environment } from '../../../src/index.ts';

export function demoParts(environment: Environment) {
  const world = createWorld();
  const workshop = createWorkshop(environment, world);
  return {
    model: ruleModel({ environment, thinkingMs: 150 }),
    agents: [leadAgent(world)],
    subagentConfigs: subagentsIn(workshop),
  };
}
