// What the stages in simulated time share: the demo's agents.

import { leadAgent, type LeadSession } from '../../../examples/voice-demo/agents/lead-agent.ts';
import { reportGenerator } from '../../../examples/voice-demo/agents/report-generator.ts';
import { rideBooker } from '../../../examples/voice-demo/agents/ride-booker.ts';
import { tableBooker } from '../../../examples/voice-demo/agents/table-booker.ts';
import { createWorkshop } from '../../../examples/voice-demo/agents/workshop.ts';
import { createWorld } from '../../../examples/voice-demo/agents/world.ts';
import { brainModel } from '../../../examples/voice-demo/brain/brain-model.ts';
import type { Environment } from '../../../src/index.ts';

/** @param pace so much of their time the subagents take */
export function demoParts(
  environment: Environment,
  session: () => Pick<LeadSession, 'subagents' | 'store'>,
  pace = 0.5,
) {
  const world = createWorld();
  const workshop = createWorkshop(environment, world, pace);
  return {
    model: brainModel({ environment, thinkingMs: 150 }),
    lead: leadAgent(world, session),
    subagentConfigs: {
      book_ride: rideBooker(workshop),
      book_table: tableBooker(workshop),
      generate_report: reportGenerator(workshop),
    },
  };
}
