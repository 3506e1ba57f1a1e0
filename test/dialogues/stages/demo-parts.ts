// What the stages in simulated time share: the demo's agents, whose work takes half of its time.

import { leadAgent } from '../../../examples/voice-demo/agents/lead-agent.ts';
import { reportGenerator } from '../../../examples/voice-demo/agents/report-generator.ts';
import { rideBooker } from '../../../examples/voice-demo/agents/ride-booker.ts';
import { tableBooker } from '../../../examples/voice-demo/agents/table-booker.ts';
import { createWorkshop } from '../../../examples/voice-demo/agents/workshop.ts';
import { createWorld } from '../../../examples/voice-demo/agents/world.ts';
import { brainModel } from '../../../examples/voice-demo/brain/brain-model.ts';
import type { SessionFace } from '../../../examples/voice-demo/session-face.ts';
import type { Environment } from '../../../src/index.ts';

/** So much of their time the subagents take. */
const PACE = 0.5;

export function demoParts(
  environment: Environment,
  session: () => Pick<SessionFace, 'subagents' | 'store'>,
) {
  const world = createWorld();
  const workshop = createWorkshop(environment, world, PACE);
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
