// Tests the rules of an API against the official package of its provider. A rule that refuses a call also refuses the
// request that the package builds from the call, and no other rule refuses that request.

import fc from 'fast-check';
import { APICallError } from 'ai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resolveModel } from '../../../src/actors/model/model.ts';
import { providerRefusals, type ProviderApi, type RuledCall } from '../../../src/testing/index.ts';
import { ruledProviders, type Provider } from '../../support/providers.ts';
import { readRequest } from '../../support/wire-requests.ts';

type Message = RuledCall['prompt'][number];
type Tool = NonNullable<RuledCall['tools']>[number];

const call = (toolCallId: string, toolName = 'look', input: unknown = { at: 'sales' }) => ({
  type: 'tool-call' as const,
  toolCallId,
  toolName,
  input,
});
const answered = (...ids: string[]): Message => ({
  role: 'tool',
  content: ids.map((toolCallId) => ({
    type: 'tool-result',
    toolCallId,
    toolName: 'look',
    output: { type: 'text', value: '7' },
  })),
});
const said = (text: string, ...calls: ReturnType<typeof call>[]): Message => ({
  role: 'assistant',
  content: [{ type: 'text', text }, ...calls],
});
const called = (...calls: ReturnType<typeof call>[]): Message => ({
  role: 'assistant',
  content: calls,
});

const ids = fc.constantFrom('abc123XYZ', 'def456UVW', 'functions.look:0', 'a'.repeat(65));
const names = fc.constantFrom('look', 'look', 'look up', '7up', 'x'.repeat(65));
const inputs = fc.constantFrom<unknown>({ at: 'sales' }, {}, [7], 'text', null);
const texts = ['hello', 'and?', ' \n'];

/** These packages leave out empty assistant texts, so nothing is left between two system messages. */
const withoutEmpty: ReadonlySet<ProviderApi> = new Set(['anthropic', 'qwen']);

const parts = (api: ProviderApi): fc.Arbitrary<readonly Message[]> =>
  fc.oneof(
    fc
      .constantFrom(...texts, '')
      .map((text): Message[] => [{ role: 'user', content: [{ type: 'text', text }] }]),
    fc
      .constantFrom(...texts, ...(withoutEmpty.has(api) ? [] : ['']))
      .map((text): Message[] => [said(text)]),
    fc.constantFrom(...texts).map((content): Message[] => [{ role: 'system', content }]),
    fc
      .tuple(ids, names, inputs)
      .map(([id, ...rest]): Message[] => [called(call(id, ...rest)), answered(id)]),
    fc.tuple(ids, names, inputs).map((given): Message[] => [said('I look.', call(...given))]),
    ids.map((id): Message[] => [answered(id)]),
    fc
      .tuple(ids, ids)
      .map(([id, other]): Message[] => [called(call(id), call(other)), answered(id, other)]),
    fc
      .tuple(ids, ids)
      .map(([id, other]): Message[] => [
        called(call(id), call(other)),
        answered(other),
        answered(id),
      ]),
  );

const shape = { type: 'object', properties: { at: { type: 'string' } } } as const;
const schemas = fc.constantFrom<Extract<Tool, { type: 'function' }>['inputSchema']>(
  shape,
  { anyOf: [shape] },
  { ...shape, oneOf: [{ required: ['at'] }] },
  { type: 'string' },
  { type: 'object' },
  { type: 'object', properties: { at: { type: 'array' } } },
  { type: 'object', properties: { at: { type: 'array', items: [{ type: 'number' }] } } },
  { type: 'object', properties: { 'filter[id]': { type: 'string' } } },
);
const tools: fc.Arbitrary<Tool[]> = fc.array(
  fc.record({ type: fc.constant('function'), name: names, inputSchema: schemas }),
  { maxLength: 2 },
);
const calls = (api: ProviderApi) =>
  fc.record({
    prompt: fc
      .tuple(fc.boolean(), fc.array(parts(api), { minLength: 1, maxLength: 4 }))
      .map(([isTold, all]): Message[] => [
        ...(isTold ? [{ role: 'system' as const, content: 'You help.' }] : []),
        ...all.flat(),
      ]),
    tools,
  });

/** Returns the request that the package builds from a call, or the error text if the package refuses the call. */
async function requestOf(provider: Provider, { prompt, tools: given = [] }: RuledCall) {
  const sent: string[] = [];
  const model = resolveModel(
    provider.model({
      url: 'http://127.0.0.1:1',
      fetch: (_, init) => {
        sent.push(typeof init?.body === 'string' ? init.body : '');
        return Promise.resolve(Response.json({ message: 'refused' }, { status: 400 }));
      },
    }),
  );
  const asked = { prompt: structuredClone(prompt), ...(given.length > 0 && { tools: given }) };
  const error: unknown = await model.doGenerate(asked).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  const [body] = sent;
  expect(APICallError.isInstance(error)).toBe(body !== undefined);
  return body === undefined ? String(error) : { body };
}

/** Without tools, this package leaves the calls out of the prompt and warns. */
const LEFT_OUT = 'tools-for-calls';

describe('providerRules', () => {
  beforeAll(() => {
    globalThis.AI_SDK_LOG_WARNINGS = false;
  });
  afterAll(() => {
    globalThis.AI_SDK_LOG_WARNINGS = undefined;
  });

  it.each(ruledProviders.flatMap((provider) => (provider.api ? [provider] : [])))(
    'refuse the same calls as the rules for the request that the package sends: $name',
    async (provider) => {
      const api = provider.api as ProviderApi;
      await fc.assert(
        fc.asyncProperty(calls(api), async (asked) => {
          const refusals = providerRefusals(asked, [api]);
          const byPackage = refusals.find(({ rule }) => rule.byPackage);
          const request = await requestOf(provider, asked);
          if (typeof request === 'string') {
            expect(byPackage).toBeDefined();
            expect(request).toContain(byPackage?.words);
            return;
          }
          const ofRequest = providerRefusals(readRequest(api, request.body), [api]);
          const namesOf = (all: typeof refusals) => new Set(all.map(({ rule }) => rule.name));
          const expected = namesOf(refusals);
          if (api === 'bedrock') expected.delete(LEFT_OUT);
          expect(namesOf(ofRequest)).toEqual(expected);
        }),
        { numRuns: 150 },
      );
    },
  );
});
