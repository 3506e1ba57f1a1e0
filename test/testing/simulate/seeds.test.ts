// Whole conversations under many seeds with every fault, and the seeds that once found a fault. SIMULATE_TEXT,
// SIMULATE_VOICE and SIMULATE_FROM select other seeds.

import { describe, expect, test } from 'vitest';
import { openaiRealtime } from '../../../src/adapters/openai-realtime/index.ts';
import {
  crashEverywhere,
  parseScript,
  replayScript,
  simulate,
  simulateOnce,
} from '../../../src/testing/index.ts';
import { voiceServerStage } from '../../../src/testing/voice-server/index.ts';
import { plainApp } from '../../../src/testing/simulate/default-app.ts';
import { found } from './support/found.ts';

const from = Number(process.env['SIMULATE_FROM'] ?? 1);
const counts = {
  text: Number(process.env['SIMULATE_TEXT'] ?? 200),
  voice: Number(process.env['SIMULATE_VOICE'] ?? 100),
} as const;

const SLOW = { timeout: 600_000 };

test('P1 to P10: hold in text sessions despite any fault', SLOW, async () => {
  const { runs, work } = await simulate({
    session: 'text',
    seeds: { from, count: counts.text },
    inMostRuns: ['crashes', 'bargeIns', 'questions', 'heard', 'effects'],
  });
  expect(runs).toBe(counts.text);
  expect(work.children).toBeGreaterThan(0.2 * runs);
  expect(work.events).toBeGreaterThan(0.2 * runs);
});

test('P1 to P10: hold in voice sessions despite any fault', SLOW, async () => {
  const { runs, work } = await simulate({
    session: 'voice',
    seeds: { from, count: counts.voice },
    inMostRuns: ['crashes', 'drops', 'bargeIns', 'questions', 'heard', 'effects'],
  });
  expect(runs).toBe(counts.voice);
  expect(work.children).toBeGreaterThan(0.2 * runs);
  expect(work.resumed).toBeGreaterThan(0.1 * runs);
});

test('P1 to P10: hold on a real wire despite any fault', SLOW, async () => {
  const voice = voiceServerStage({
    wire: 'openai-realtime',
    transport: (webSocket) => openaiRealtime({ apiKey: 'some-key', webSocket, keepAliveMs: null }),
  });
  const { work } = await simulate({ session: 'voice', voice, seeds: 10 });
  expect(work.heard).toBeGreaterThan(0);
});

describe('P9: a crash at each entry of a short conversation', () => {
  test.each([
    ['text', 3, { steps: 3, spanMs: 8000 }],
    ['voice', 3, { steps: 3, spanMs: 8000 }],
    // A subagent of a subagent, a service, and a program.
    ['text', 5, { steps: 2, spanMs: 6000 }],
    ['text', 19, { steps: 2, spanMs: 6000 }],
    ['text', 31, { steps: 2, spanMs: 6000 }],
  ] as const)('keeps every promise by %s, seed %i', SLOW, async (session, seed, generate) => {
    const { appends, runs } = await crashEverywhere({ seed, session, generate });
    expect(appends).toBeGreaterThan(20);
    expect(runs).toBe(2 * appends);
  });
});

describe('P9: another process that continues between any two messages', () => {
  test.each(['text', 'voice'] as const)('keeps every promise by %s', SLOW, async (session) => {
    let crashes = 0;
    for (let seed = 1; seed <= 10; seed += 1) {
      const options = { session, faults: {}, alwaysRehydrates: true } as const;
      const { record, broken } = await simulateOnce(seed, options);
      expect(broken).toEqual([]);
      crashes += record.log.filter(({ kind }) => kind === 'crashed').length;
    }
    expect(crashes).toBeGreaterThan(50);
  });
});

test.each(found)('$why', async ({ json, isNew }) => {
  const { broken } = await replayScript(parseScript(json), isNew ? {} : { app: plainApp });
  expect(broken).toEqual([]);
});
