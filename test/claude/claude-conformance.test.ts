// The relay to Claude passes the relay suite with the real SDK and program, against a local endpoint that implements
// the model's API.

import { describe, test } from 'vitest';
import { relayConformance } from '../suites/relays/index.ts';
import { claudeStage } from './support/claude-stage.ts';
import { query } from './support/sdk.js';

describe('Claude Code', () => {
  const cases = relayConformance({
    name: 'Claude Code',
    // The test can neither make the real program ignore a cancellation nor corrupt its messages.
    shows: ['die'],
    graceMs: 5_000,
    patience: 5_000_000,
    open: () => claudeStage(query),
  });
  for (const { name, skipped } of cases)
    if (skipped !== null) console.warn(`Left out: ${name}: ${skipped}`);
  test.each(cases.filter(({ skipped }) => skipped === null))('$name', ({ run }) => run());
});
