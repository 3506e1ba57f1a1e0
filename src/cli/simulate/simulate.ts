// `offstage simulate`: runs random conversations with injected faults to find a broken promise.

import { readFileSync } from 'node:fs';
import { ConfigurationError, messageOf, OffstageError } from '../../values/errors.ts';
import { parseScript } from '../../testing/simulate/log/script.ts';
import {
  crashEverywhere,
  replayScript,
  simulate as runSimulation,
  simulateOnce,
} from '../../testing/simulate/simulate.ts';
import { SimulationError } from '../../testing/simulate/simulation-error.ts';
import { logInWords } from '../../testing/simulate/log/log.ts';
import { scriptInWords } from '../../testing/simulate/log/script.ts';
import type { SimulationOptions } from '../../testing/simulate/simulate.ts';
import { argumentsOf, commandOf, WrongCall, type Command } from '../command/command.ts';
import { z } from 'zod';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const usage = `offstage simulate --seed <n> | --seeds <count> | --script <file> [options]

Plays conversations under one seed each, in simulated time, with crashes, lost connections, people
who break in, and everything else that goes wrong; and checks what a session promises.

  --seed <n>           play this seed again; print the script and what happened
  --seeds <count>      play so many seeds; stop at the first that breaks a promise
  --from <n>           the first of these seeds (1)
  --script <file>      play a script again, as a failure has printed it (JSON)
  --crash-everywhere   play --seed (1) once for each place where it can crash
  --scenario <module>  your own agents and tools: its default export is { app: { agents, … }, … }
  --session <kind>     text, voice, or both: each seed with one of them (as the scenario says, or both)
  --rehydrate          let the process go, and another one go on, between any two messages
  --journal            also print the entries of the journal
  --json               print JSON

Exit status: 0 when every promise was kept, 1 when one was broken, 2 for a wrong call.
`;

const options = {
  seed: { type: 'string' },
  seeds: { type: 'string' },
  from: { type: 'string', default: '1' },
  script: { type: 'string' },
  'crash-everywhere': { type: 'boolean', default: false },
  scenario: { type: 'string' },
  session: { type: 'string' },
  rehydrate: { type: 'boolean', default: false },
  journal: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
} as const;

type Print = (text: string) => void;

interface Terminal {
  readonly print: Print;
  readonly complain: Print;
}

type Values = ReturnType<typeof valuesOf>;

export const simulate: Command = commandOf({
  name: 'simulate',
  summary: 'look for a promise that is broken when everything goes wrong',
  usage,
  async run(args, print, complain) {
    try {
      const values = valuesOf(args);
      const problem = problemOf(values);
      if (problem !== null) throw new WrongCall(problem);
      return await perform(values, await simulationOf(values), { print, complain });
    } catch (error) {
      if (error instanceof SimulationError) {
        complain(`${error.message}\n`);
        return 1;
      }
      if (error instanceof OffstageError) throw new WrongCall(error.message);
      throw error;
    }
  },
});

const valuesOf = (args: readonly string[]) => argumentsOf({ args: [...args], options }).values;

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new ConfigurationError('CANNOT_READ', `${path} cannot be read: ${messageOf(cause)}`, {
      cause,
    });
  }
}

function problemOf(values: Values): string | null {
  const { seed, seeds, from, script, session } = values;
  const isCrashing = values['crash-everywhere'];
  const ways = [seed, seeds, script].filter((one) => one !== undefined).length;
  if (ways !== 1 && !(isCrashing && ways === 0))
    return 'Expected one of --seed, --seeds and --script';
  if (isCrashing && (seeds ?? script) !== undefined) return '--crash-everywhere takes a --seed';
  for (const [name, value] of Object.entries({ seed, seeds, from }))
    if (value !== undefined && !/^\d{1,15}$/.test(value))
      return `Expected --${name} to be a whole number, got \`${value}\``;
  return session === undefined || ['text', 'voice', 'both'].includes(session)
    ? null
    : `Expected --session to be text, voice or both, got \`${session}\``;
}

async function simulationOf({ scenario, session, rehydrate }: Values): Promise<SimulationOptions> {
  const own = scenario === undefined ? {} : await loadScenario(scenario);
  return {
    ...own,
    ...(session !== undefined && { session: session as 'text' | 'voice' | 'both' }),
    ...(rehydrate && { alwaysRehydrates: true }),
  };
}

async function perform(
  values: Values,
  simulation: SimulationOptions,
  terminal: Terminal,
): Promise<number> {
  const { seed = '1', seeds, from, script, journal, json } = values;
  const { print } = terminal;
  if (values['crash-everywhere']) {
    const { appends, runs } = await crashEverywhere({ ...simulation, seed: Number(seed) });
    print(
      json
        ? `${JSON.stringify({ runs, appends })}\n`
        : `${runs} runs, with a crash before and after each of ${appends} entries: all is kept\n`,
    );
    return 0;
  }
  if (seeds !== undefined)
    return playRange({ from: Number(from), count: Number(seeds), json }, simulation, terminal);
  const { record, broken } =
    script === undefined
      ? await simulateOnce(Number(seed), simulation)
      : await replayScript(parseScript(textOf(script)), simulation);
  const log = journal ? record.log : record.log.filter(({ kind }) => kind !== 'kept');
  if (json) print(`${JSON.stringify({ script: record.script, log, broken })}\n`);
  else {
    print(`${scriptInWords(record.script)}\n\n${logInWords(log)}\n\n`);
    for (const { promise, what } of broken) print(`${promise}: ${what}\n`);
    if (broken.length === 0) print('Every promise was kept.\n');
  }
  if (broken.length === 0) return 0;
  if (script !== undefined) return 1;
  // The rerun also failed, and its error names the smallest part of the conversation that fails.
  await runSimulation({ ...simulation, seed: Number(seed) });
  return 1;
}

const PROGRESS_EVERY = 500;

async function playRange(
  { from, count, json }: { readonly from: number; readonly count: number; readonly json: boolean },
  simulation: SimulationOptions,
  { print, complain }: Terminal,
): Promise<number> {
  let done = 0;
  const { runs, work } = await runSimulation({
    ...simulation,
    seeds: { from, count },
    onRun: () => {
      done += 1;
      if (done % PROGRESS_EVERY === 0 && done < count) complain(`${done} of ${count}\n`);
    },
  });
  const lines = Object.entries(work).map(([kind, times]) => `  ${kind}: ${times}`);
  print(
    json
      ? `${JSON.stringify({ runs, work })}\n`
      : `${runs} runs, and every promise was kept.\n${lines.join('\n')}\n`,
  );
  return 0;
}

const scenarioSchema = z.looseObject({
  app: z.union([z.looseObject({ agents: z.array(z.unknown()).min(1) }), z.instanceof(Function)]),
});

/** @throws {ConfigurationError} `INVALID_SCENARIO` if a module cannot be loaded, or exports no scenario. */
async function loadScenario(path: string): Promise<SimulationOptions> {
  let loaded: { readonly default?: unknown };
  try {
    loaded = (await import(pathToFileURL(resolve(path)).href)) as typeof loaded;
  } catch (cause) {
    throw new ConfigurationError(
      'INVALID_SCENARIO',
      `The scenario ${path} cannot be loaded: ${messageOf(cause)}`,
      { cause },
    );
  }
  const parsed = scenarioSchema.safeParse(loaded.default);
  if (!parsed.success)
    throw new ConfigurationError(
      'INVALID_SCENARIO',
      `${path}: expected the default export to be the options of a simulation: ${z.prettifyError(parsed.error)}`,
    );
  return loaded.default as SimulationOptions;
}
