// A subagent on a hosted agent, whose program is killed at random (RELAY-LOOP-1..3, A2A-SESSION-1). The task continues
// at the agent, is found again by its id, and receives each answer once.

import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { KILL_TIMEOUT_MS, playKills, SEEDS } from '../../support/relay-kills.ts';
import { agentServer } from './support/agent-server.ts';

const PROGRAM = fileURLToPath(new URL('support/killed-program.ts', import.meta.url));

test.each(SEEDS)(
  'completes one agent task despite random kills (seed %i)',
  { timeout: KILL_TIMEOUT_MS },
  async (seed) => {
    const server = await agentServer();
    onTestFinished(() => server.close());
    await playKills({ seed, program: PROGRAM, args: [server.url] }, ({ outcome }) => {
      expect(outcome).toMatchObject({ status: 'completed' });
      expect(outcome.text).toMatch(/denied\. Done\.$/);
      // There is one task, and each answer reached its question once.
      const [prompt, ...answers] = server.told;
      expect(prompt).toContain('acts:');
      expect(answers).toEqual([
        'Permitted, for this request only.',
        'about First question?',
        'about Second question?',
        expect.stringMatching(/^Not permitted\./),
      ]);
    });
  },
);
