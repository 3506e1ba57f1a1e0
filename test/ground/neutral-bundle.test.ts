// Checks the entries as an app bundles them for a platform other than Node.js, and how they behave without Node's
// globals.

import { createContext, Script } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { bundle } from '../support/bundle.ts';

/** Web globals that exist in every browser, worker and edge runtime. */
const webGlobals = {
  AbortController,
  AbortSignal,
  clearTimeout,
  crypto,
  MessageChannel,
  ReadableStream,
  setTimeout,
  structuredClone,
  TextDecoder,
  TextEncoder,
  TransformStream,
  URL,
};

const textGlobals = { TextDecoder, TextEncoder };

/** Runs a script in a realm that has only the language's globals and these. */
function runWith(globals: object, code: string): unknown {
  return new Script(code).runInContext(createContext({ ...globals }));
}

describe('on a platform without host APIs, with all modules bundled', () => {
  test("runs a machine from offstage/machines with only the language's built-ins", async () => {
    const { code, builtIns } = await bundle('src/entries/machines.ts');
    expect(builtIns).toEqual([]);
    const states = 'Object.keys(bundled.subagentMachine.states).join()';
    expect(runWith({}, `${code}; ${states}`)).toContain('waiting_for_input');
  });

  test('converts audio with offstage/voice and names invalid options', async () => {
    const { code, builtIns } = await bundle('src/voice/index.ts');
    expect(builtIns).toEqual([]);
    const text = 'bundled.encodePcm16Base64(Int16Array.of(1, -2))';
    expect(runWith(textGlobals, `${code}; ${text}`)).toBe('AQD+/w==');
    expect(runWith(textGlobals, `${code}; bundled.decodePcm16Base64(${text}).join()`)).toBe('1,-2');
    const sound = 'bundled.encodeWav(bundled.workingSound())';
    const back = `bundled.decodeWav(${sound}).samples.length`;
    expect(runWith(textGlobals, `${code}; ${back}`)).toBe(48_000);
    const wrong = `try { bundled.workingSound({ volum: 1 }) } catch (error) { error.message }`;
    expect(runWith(textGlobals, `${code}; ${wrong}`)).toBe(
      'workingSound: unknown option `volum`; did you mean `volume`?',
    );
  });

  test("starts a subagent's unit, whose first action is to request what it needs", async () => {
    const { code, builtIns } = await bundle('src/actors/subagent/subagent-unit.ts');
    expect(builtIns).toEqual([]);
    const input = { at: 0, limits: { maxSteps: 9, timeoutMs: 60_000, maxInputRetries: 1 } };
    const begin = `
      const [, effects] = bundled.begin('sub_1', ${JSON.stringify(input)});
      effects.map(({ name }) => name).join()`;
    expect(runWith(textGlobals, `${code}; {${begin}}`)).toContain('prepar');
  });

  test('imports no Node.js modules in the source files of offstage', async () => {
    const { builtIns } = await bundle('src/index.ts');
    // The AI SDK's gateway has separate files for browsers and other platforms.
    expect(builtIns.filter((it) => !it.includes('(node_modules/@vercel/oidc/'))).toEqual([]);
  });
});

describe.each(['browser', 'worker'] as const)('for a %s', (host) => {
  test('imports offstage with the AI SDK and zod without loading a Node.js module', async () => {
    const { code, builtIns } = await bundle('src/index.ts', [
      'browser',
      ...(host === 'worker' ? [host] : []),
    ]);
    expect(builtIns).toEqual([]);
    expect(runWith(webGlobals, `${code}; typeof bundled.TextSession`)).toBe('function');
  });
});
