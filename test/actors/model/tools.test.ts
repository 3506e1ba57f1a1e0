import { dynamicTool, generateText, jsonSchema, tool, zodSchema } from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { z as z3 } from 'zod/v3';
import { prepareTools, type ToolEntry } from '../../../src/actors/model/tools.ts';
import { ConfigurationError } from '../../../src/values/errors.ts';
import { answer, model, text } from './fakes.ts';

const city = z.object({ city: z.string().describe('Where') });

/** Returns what the model sees of each tool. */
async function offered(tools: Record<string, unknown>) {
  const scripted = model(answer([text('ok')]));
  await generateText({
    model: scripted,
    prompt: 'hi',
    tools: prepareTools(tools, 'tools').modelTools,
  });
  return scripted.prompts[0]?.tools ?? [];
}

const entryOf = (tools: Record<string, unknown>, name: string): ToolEntry =>
  prepareTools(tools, 'tools').execution.get(name)!;

/** A schema from an unknown library, which counts its conversions. */
function standardSchema(withJson = true) {
  const counter = { conversions: 0 };
  const schema = {
    counter,
    '~standard': {
      version: 1 as const,
      vendor: 'test',
      validate: (value: unknown) =>
        typeof value === 'object' && value !== null && 'city' in value
          ? { value: { city: String(value.city).toUpperCase() } }
          : { issues: [{ message: 'city is missing' }] },
      ...(withJson
        ? {
            jsonSchema: {
              input: () => {
                counter.conversions += 1;
                return { type: 'object', properties: { city: { type: 'string' } } };
              },
              output: () => ({}),
            },
          }
        : {}),
    },
  };
  return schema;
}

describe('TOOLS-1: the schema of a tool', () => {
  test('throws an error that names the tool when it has neither inputSchema nor parameters', () => {
    const tools = { search: { description: 'Searches', execute: () => 1 } };
    expect(() => prepareTools(tools, 'reporter.tools')).toThrow(ConfigurationError);
    expect(() => prepareTools(tools, 'reporter.tools')).toThrow(
      'reporter.tools.search: expected an inputSchema (or the older parameters), got neither',
    );
  });

  test.each([
    ['zod 4', { inputSchema: city }],
    ['zod 4, wrapped', { inputSchema: zodSchema(city) }],
    ['zod 3', { inputSchema: z3.object({ city: z3.string() }) }],
    ['Standard Schema', { inputSchema: standardSchema() }],
    ['lazy', { inputSchema: () => zodSchema(city) }],
    ['the older parameters', { parameters: city }],
    ['dynamicTool', dynamicTool({ inputSchema: city, execute: () => null })],
  ])('%s: the model gets the schema, and the input is checked', async (_, source) => {
    const [told] = await offered({ weather: source });
    expect(told).toMatchObject({
      type: 'function',
      name: 'weather',
      inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
    });
    const entry = entryOf({ weather: source }, 'weather');
    expect(await entry.validate({ city: 'PARIS' })).toEqual({ ok: true, value: { city: 'PARIS' } });
    const refused = await entry.validate({});
    expect(refused.ok ? '' : refused.message).toContain('Invalid input for tool weather');
    expect(refused.ok ? '' : refused.message).toContain('city');
  });

  test('supports versions of zod without Standard Schema', async () => {
    const schema = z3.object({ city: z3.string() });
    const old = new Proxy(schema, {
      has: (target, key) => key !== '~standard' && key in target,
    });
    expect(await offered({ weather: { inputSchema: old } })).toMatchObject([
      { inputSchema: { properties: { city: { type: 'string' } } } },
    ]);
  });

  test('accepts jsonSchema() with and without a validator', async () => {
    const json = { type: 'object', properties: { city: { type: 'string' } } } as const;
    const checked = jsonSchema(json, {
      validate: () => ({ success: false, error: new Error('never right') }),
    });
    const unchecked = { weather: { inputSchema: jsonSchema(json) } };
    expect(await offered(unchecked)).toMatchObject([{ inputSchema: json }]);
    expect(await entryOf(unchecked, 'weather').validate(1)).toEqual({ ok: true, value: 1 });
    expect(
      await entryOf({ weather: { inputSchema: checked } }, 'weather').validate({}),
    ).toMatchObject({ ok: false });
  });

  test.each([
    ['a bare JSON Schema', { type: 'object', properties: {} }, 'wrap it in jsonSchema'],
    ['something else', { name: 'x' }, 'an object with the keys name'],
    ['a string', 'schema', 'got schema'],
    ['not an object', z.string(), 'expected the schema of an object, got "string"'],
    ['no JSON Schema', z.object({ at: z.date() }), 'Date cannot be represented'],
    ['Standard Schema without JSON', standardSchema(false), 'does not support JSON Schema'],
    ['a function of something else', () => null, 'cannot be told to a model'],
  ])('%s is refused', (_, inputSchema, message) => {
    const prepare = (): unknown => prepareTools({ weather: { inputSchema } }, 'tools');
    expect(prepare).toThrow(ConfigurationError);
    expect(prepare).toThrow(message);
    expect(prepare).toThrow('tools.weather.inputSchema');
  });
});

test('TOOLS-2: converts a schema once, even if it is prepared and sent repeatedly', async () => {
  const schema = standardSchema();
  const tools = { weather: tool({ inputSchema: schema, execute: () => 1 }) };
  for (let run = 0; run < 3; run += 1) await offered(tools);
  expect(schema.counter.conversions).toBe(1);
});

describe('TOOLS-3: the tools offered to the model', () => {
  const full = {
    description: 'Weather',
    inputSchema: city,
    strict: true,
    inputExamples: [{ input: { city: 'Rome' } }],
    providerOptions: { test: { cache: true } },
    metadata: { source: 'here' },
    execute: () => 1,
    needsApproval: true,
    toModelOutput: () => ({ type: 'text', value: '' }),
    onInputAvailable: () => {
      throw new Error('called by the SDK');
    },
    deferLoading: true,
    contextSchema: city,
  };

  test('contain the fields that a model reads, but no functions', async () => {
    const { modelTools } = prepareTools({ weather: full }, 'tools');
    expect(Object.keys(modelTools?.['weather'] ?? {}).toSorted()).toEqual([
      'description',
      'inputExamples',
      'inputSchema',
      'metadata',
      'providerOptions',
      'strict',
    ]);
    expect(await offered({ weather: full })).toMatchObject([
      {
        description: 'Weather (needs approval)',
        strict: true,
        inputExamples: [{ input: { city: 'Rome' } }],
        providerOptions: { test: { cache: true } },
      },
    ]);
  });

  test('evaluate a description function only once', async () => {
    let calls = 0;
    const described = {
      inputSchema: city,
      description: () => `Weather, version ${++calls}`,
    };
    const prepared = prepareTools({ weather: described }, 'tools');
    expect(prepared.modelTools?.['weather']?.description).toBe('Weather, version 1');
    const broken = (description: unknown) => () =>
      prepareTools({ weather: { inputSchema: city, description } }, 'tools');
    expect(
      broken(() => {
        throw new Error('no context');
      }),
    ).toThrow('tools.weather.description: expected a string, but it threw: no context');
    expect(broken(() => 7)).toThrow('tools.weather.description: expected a string, got 7');
  });

  test('stay empty if there are no tools', () => {
    expect(prepareTools({}, 'tools')).toEqual({ modelTools: undefined, execution: new Map() });
  });

  test('include a provider tool unchanged, although the runtime does not run it', async () => {
    const search = {
      type: 'provider',
      id: 'test.search',
      args: { depth: 2 },
      isProviderExecuted: true,
    };
    const shell = {
      type: 'provider',
      id: 'test.shell',
      args: {},
      isProviderExecuted: false,
      inputSchema: city,
      execute: () => 'ran',
    };
    expect(await offered({ search, shell })).toEqual([
      { type: 'provider', name: 'search', id: 'test.search', args: { depth: 2 } },
      { type: 'provider', name: 'shell', id: 'test.shell', args: {} },
    ]);
    const { execution } = prepareTools({ search, shell }, 'tools');
    expect([...execution.keys()]).toEqual(['shell']);
  });
});

describe('names', () => {
  const any = { inputSchema: city, execute: () => 1 };

  test.each([[''], ['with space'], ['ümlaut'], ['a.b'], ['x'.repeat(65)]])(
    '%j is refused',
    (name) => {
      expect(() => prepareTools({ [name]: any }, 'tools')).toThrow(ConfigurationError);
      expect(() => prepareTools({ [name]: any }, 'tools')).toThrow(JSON.stringify(name));
    },
  );

  test('accept names that Object.prototype also uses', async () => {
    const tools = { ['__proto__']: any, constructor: any, ['x'.repeat(64)]: any };
    expect((await offered(tools)).map(({ name }) => name)).toEqual(Object.keys(tools));
    expect(prepareTools(tools, 'tools').execution.get('toString')).toBeUndefined();
  });

  test('refuse a reserved name unless the runtime uses it', () => {
    const own = (): unknown => prepareTools({ ask_user: any }, 'tools', { reserved: ['ask_user'] });
    expect(own).toThrow(ConfigurationError);
    expect(own).toThrow('tools.ask_user: the name belongs to the runtime');
    const builtIn = { ask_user: { inputSchema: city } };
    expect(() => prepareTools({ ask_user: any }, 'tools', { builtIn })).toThrow('ask_user');
    const { execution } = prepareTools({ weather: any }, 'tools', { builtIn });
    expect([...execution.keys()]).toEqual(['weather', 'ask_user']);
    expect(execution.get('ask_user')?.execute).toBeNull();
  });
});

test.each([
  ['not an object', 'weather', 'tools.weather'],
  ['execute', { inputSchema: city, execute: 'run' }, 'expected a function'],
  ['needsApproval', { inputSchema: city, needsApproval: 'always' }, 'needsApproval'],
  ['timeoutMs', { inputSchema: city, timeoutMs: -1 }, 'timeoutMs'],
  ['toModelOutput', { inputSchema: city, toModelOutput: {} }, 'toModelOutput'],
])('refuse an invalid %s', (_, source, message) => {
  const prepare = (): unknown => prepareTools({ weather: source }, 'tools');
  expect(prepare).toThrow(ConfigurationError);
  expect(prepare).toThrow(message);
});

describe('validate', () => {
  test('applies coercions, defaults and transformations', async () => {
    const inputSchema = z.object({
      n: z.coerce.number(),
      unit: z.string().default('C'),
      at: z.string().transform((iso) => new Date(iso)),
    });
    const entry = entryOf({ t: { inputSchema } }, 't');
    expect(await entry.validate({ n: '3', at: '2030-01-01T00:00:00Z' })).toEqual({
      ok: true,
      value: { n: 3, unit: 'C', at: new Date('2030-01-01T00:00:00Z') },
    });
  });

  test('refuses input when a refinement throws, and cuts a long error message', async () => {
    const throwing = city.refine(() => {
      throw new Error('database is down');
    });
    const refused = await entryOf({ t: { inputSchema: throwing } }, 't').validate({ city: 'x' });
    expect(refused).toMatchObject({
      ok: false,
      message: expect.stringContaining('database is down'),
    });
    const long = await entryOf({ t: { inputSchema: city } }, 't').validate({
      other: 'y'.repeat(100_000),
    });
    expect(long.ok ? 0 : long.message.length).toBeLessThan(4200);
    expect(long).toMatchObject({ message: expect.stringContaining('more characters') });
  });
});

test('calls execute, needsApproval and toModelOutput as methods of the tool', async () => {
  class Counter {
    readonly inputSchema = city;
    readonly #count = 7;
    execute(): number {
      return this.#count;
    }
    needsApproval(): boolean {
      return this.#count > 5;
    }
    toModelOutput(): { type: 'text'; value: string } {
      return { type: 'text', value: `count ${this.#count}` };
    }
  }
  const entry = entryOf({ counter: new Counter() }, 'counter');
  expect(entry.execute?.({}, {} as never)).toBe(7);
  expect(entry.toModelOutput?.({} as never)).toEqual({ type: 'text', value: 'count 7' });
  expect(typeof entry.needsApproval === 'function' && entry.needsApproval({}, {} as never)).toBe(
    true,
  );
});
