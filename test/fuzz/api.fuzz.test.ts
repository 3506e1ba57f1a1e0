// A short fuzz run of the public API. The long form: `npm run fuzz -- --calls N --seed S`.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ConfigurationError } from '../../src/index.ts';
import { fuzz } from './fuzzer.ts';
import { hostileCount, hostileValueAt, inWords } from './hostile-values.ts';
import { newEnvironment, publicSurface } from './public-surface.ts';

test('has a row for every exported function and class', async () => {
  expect((await publicSurface()).unknown).toEqual([]);
});

test('accepts valid arguments for each row', async () => {
  const { callables } = await publicSurface();
  const directory = mkdtempSync(join(tmpdir(), 'offstage-rows-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  let number = 0;
  for (const { args, call, trusts, refuses } of callables) {
    if (trusts !== undefined || refuses !== undefined) continue;
    number += 1;
    const given = args({ environment: newEnvironment(number), directory, number });
    expect(() => call(...given)).not.toThrow();
  }
  expect(number).toBeGreaterThan(60);
});

/** Objects that are not options. They may have properties that this library does not read. */
const noOptions: Readonly<Record<string, readonly string[]>> = {
  'objects of others, of which some properties are read': [
    'offstage#callerOf 0', 'offstage/replay#exportRecording 0', 'offstage/replay#forkSession 0', 'offstage/replay#importRecording 0',
    'offstage/results#isLargeOutput 0', 'offstage/subagents#agentRelay 0', 'offstage/subagents#isToolFailure 0', 'offstage/compat#planStepProcessing 1', 'offstage/journal#redactingJournal 0',
    'offstage/jobs#packedEngine 0', 'offstage/jobs#packedHandler 0',
    'offstage/results#speakable 0', 'offstage/compat#subAgentRefs 0', 'offstage/results#verifyClaims 1', 'offstage#withVoice 0',
    'offstage/voice#encodeWav 0', 'offstage/voice#frameDurationMs 0', 'offstage/ai-sdk-speech#aiSdkTranscriber 0',
    'offstage/ai-sdk-speech#aiSdkVoice 0', 'offstage/twilio#acceptTwilioCall 0', 'offstage/twilio#isTwilioRequest 1',
    'offstage/ai-sdk-ui#chatTransport 0', 'offstage/encrypted-journal#encryptedJournal 0', 'offstage/otel#meteredJournal 0', 'offstage/otel#tracedHandler 0', 'offstage/otel#tracedJournal 0', 'offstage/cloudflare#hostSession 0',
  ],
  'records, which a later version may have added to': [
    'offstage/replay#checkRecording 0', 'offstage/replay#importRecording 1', 'offstage/journal#journalEntryOf 0',
    'offstage/compat#receiveClientMessage 1', 'offstage/compat#subAgentStream 0', 'offstage/results#verifyClaims 0',
    'offstage/testing/voice-server#echoResponder 0',
  ],
  'options of an error, which must not fail itself': ['offstage#ProviderError 2'],
}; // prettier-ignore

test("names the unknown option in every exported function's error", async () => {
  const { callables } = await publicSurface();
  const directory = mkdtempSync(join(tmpdir(), 'offstage-rows-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const refused: string[] = [];
  const taken: string[] = [];
  let number = 0;
  for (const { name, args, call, trusts } of callables) {
    if (trusts !== undefined) continue;
    number += 1;
    const world = { environment: newEnvironment(number), directory, number };
    for (const [at, given] of args(world).entries()) {
      if (!isRecord(given)) continue;
      const parameter = `${name} ${at}`;
      if (Object.values(noOptions).flat().includes(parameter)) continue;
      const wrong = args(world).with(at, { ...given, unknownOption: 1 });
      const why = await (async () => call(...wrong))().then(
        () => 'it was taken',
        (error: unknown) => (error instanceof ConfigurationError ? error.message : 'another error'),
      );
      (why.includes('unknownOption') ? refused : taken).push(parameter);
    }
  }
  expect(taken).toEqual([]);
  expect(refused.length).toBeGreaterThan(40);
});

function isRecord(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
  );
}

test('prints hostile values readably in a report', () => {
  for (let index = 0; index < hostileCount; index += 1)
    expect(typeof inWords(hostileValueAt(index))).toBe('string');
});

test('FUZZ-1 to FUZZ-4: hold for hostile calls to the whole public API', async () => {
  const report = await fuzz({ calls: 4_000, seed: 1 });
  expect(report.violations).toEqual([]);
  expect(report.calls).toBeGreaterThanOrEqual(4_000);
  expect(report.sessions).toBeGreaterThan(20);
});
