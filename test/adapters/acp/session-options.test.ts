// ACP-SESSION-5: no prompt is sent before the session has the app's options.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { acpRelay, type AcpRelayOptions } from '../../../src/adapters/acp/index.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import type { RelayEvent } from '../../../src/entries/subagents.ts';

const CHOOSY = fileURLToPath(new URL('support/choosy-agent.ts', import.meta.url));

type Options = NonNullable<AcpRelayOptions['configOptions']>;

/**
 * Returns the options that the agent was asked to set and those that are now set. Rejects if the session fails to
 * start.
 */
async function play(kind: string, configOptions: Options | undefined, resume?: string) {
  const stateFolder = mkdtempSync(join(tmpdir(), 'offstage-test-acp-'));
  onTestFinished(() => rmSync(stateFolder, { recursive: true, force: true }));
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const environment = nodeEnvironment();
  let words = '';
  const relay = acpRelay({
    command: process.execPath,
    args: [CHOOSY, kind],
    stateFolder,
    ...(configOptions && { configOptions }),
  });
  const starting = relay.start({
    subagentId: `sub_of_${stateFolder}`,
    signal: new AbortController().signal,
    scheduler: environment.scheduler,
    ids: environment.ids,
    ...(resume === undefined ? {} : { resume }),
    receive(event: RelayEvent) {
      if (event.type === 'words') words += event.text;
      if (event.type === 'turn_ended') resolve();
    },
    report: () => {},
  });
  try {
    const session = await starting;
    session.prompt({ key: '1', text: 'Say.' });
    await ended;
    await session.release('ended');
    return JSON.parse(words) as { readonly told: string[]; readonly set: Options };
  } finally {
    expect(readdirSync(stateFolder)).toEqual([]);
  }
}

describe.each([undefined, 's'])('a session (resumed: %s)', (resume) => {
  test.each<[string, Options | undefined, readonly string[]]>([
    ['usual', { mode: 'ask' }, ['mode:value=ask']],
    ['usual', { model: 'small', mode: 'ask' }, ['model:value=small', 'mode:value=ask']],
    ['usual', { brief: true }, ['brief:boolean=true']],
    ['usual', { mode: 'auto', brief: false }, []],
    ['usual', {}, []],
    ['usual', undefined, []],
    ['entangled', { model: 'small', mode: 'ask' }, ['model:value=small', 'mode:value=ask']],
    ['bare', { mode: 'ask' }, ['mode=ask']],
    ['quiet', { mode: 'ask' }, ['mode:value=ask']],
    ['none', undefined, []],
  ])('sends the options that differ to the agent "%s": %j', async (kind, options, expected) => {
    const { told, set } = await play(kind, options, resume);
    expect(told).toEqual(expected);
    expect(set).toMatchObject(options ?? {});
  });

  test.each<[string, Options, RegExp]>([
    ['usual', { mode: 'cautious' }, /"mode" to "cautious": .*no such value; it offers auto, ask$/],
    ['usual', { model: 'tiny' }, /"model" to "tiny": .*; it offers large, small$/],
    ['usual', { tone: 'warm' }, /"tone" to "warm": .*; it offers mode, model, brief$/],
    ['usual', { brief: 'yes' }, /"brief" to "yes": /],
    ['usual', { mode: true }, /"mode" to true: /],
    ['bare', { mode: 'cautious' }, /"mode" to "cautious": .*; it offers auto, ask$/],
    ['bare', { model: 'small' }, /"model" to "small": /],
    ['none', { mode: 'ask' }, /"mode" to "ask": .*not found/],
    ['garbage', { mode: 'ask' }, /"mode" to "ask": .*not found/],
    ['stubborn', { mode: 'ask' }, /"mode" to "ask": it says "auto"; it offers auto, ask$/],
    ['entangled', { mode: 'ask', model: 'small' }, /"mode" to "ask": it says "auto"/],
  ])('fails when the agent "%s" does not set %j', async (kind, options, message) => {
    await expect(play(kind, options, resume)).rejects.toMatchObject({
      code: 'RELAY_FAILED',
      message: expect.stringMatching(message) as string,
    });
  });
});

test.each([[{ mode: 7 }], [{ '': 'ask' }], ['ask'], [['ask']], [{ mode: null }]])(
  'refuses invalid options, and names them in the error: %j',
  (configOptions) => {
    const options = { command: 'a', configOptions } as unknown;
    expect(() => acpRelay(options as AcpRelayOptions)).toThrow('configOptions');
  },
);
