// `offstage doctor`: lists which requirements of the adapters this machine meets and which it does not.

import { messageOf } from '../../values/errors.ts';
import { argumentsOf, commandOf, WrongCall, type Command } from '../command/command.ts';
import {
  examine,
  type Finding,
  type Machine,
  type Section,
  REQUIREMENTS,
  thisMachine,
} from './findings.ts';
import type { Transport } from '../../voice/connection/transport.ts';
import { COLUMNS, filled } from '../replay/lines.ts';
import { nodeEnvironment } from '../../adapters/node/index.ts';

const NAMES = REQUIREMENTS.map(({ name }) => name);
/** The default names. A machine rarely meets the requirements of all adapters. */
const TRANSPORTS = ['openai-realtime', 'openai-live', 'gemini-live', 'local-voice'];

function namesInLines(): string {
  return filled(NAMES, ', ', COLUMNS - 4)
    .map((line) => `  ${line}`)
    .join('\n');
}

const usage = `offstage doctor [adapter …] [--connect] [--json]

Says what is found and what is missing for the adapters, by the names of their subpaths; for the voice
transports, or for those that are named:

${namesInLines()}

  --connect   also open a connection to each voice model and close it again
  --json      print the findings as JSON

  --all       examine all adapters

Exit status: 0 when this machine and every adapter that is named can be used, 1 when not,
2 for a wrong call. An adapter that is not named may lack something.
`;

/** Creates a transport with its adapter's defaults. Throws the errors of the adapter. */
export type MakeTransport = () => Promise<Transport>;

/** The transports that need only a key and a network connection. */
const CONNECTABLE: ReadonlyMap<string, MakeTransport> = new Map([
  [
    'openai-realtime',
    async () => (await import('../../adapters/openai-realtime/index.ts')).openaiRealtime(),
  ],
  ['openai-live', async () => (await import('../../adapters/openai-live/index.ts')).openaiLive()],
  ['gemini-live', async () => (await import('../../adapters/gemini-live/index.ts')).geminiLive()],
]);

const configuration = { instructions: 'Say nothing.', tools: [] };

/**
 * Opens a connection to a voice model and closes it again, because only a connection shows whether the key, the model
 * and the network work. It sends no text and no audio. Never rejects.
 */
async function tryConnection(make: MakeTransport): Promise<Finding> {
  const environment = nodeEnvironment();
  try {
    const transport = await make();
    const since = environment.clock.now();
    const connection = transport.connect(configuration, { environment });
    connection.audio.subscribe();
    return await new Promise<Finding>((resolve) => {
      connection.events.subscribe((event) => {
        if (event.type === 'transport.ready') {
          const text = `Connected in ${Math.round(environment.clock.now() - since)} ms`;
          void connection.close().then(() => resolve({ status: 'ok', text }));
        } else if (event.type === 'transport.closed') {
          const advice = event.retryable ? ' (may go away by itself)' : '';
          resolve({ status: 'missing', text: `${event.reason}${advice}` });
        }
      });
    });
  } catch (error) {
    return { status: 'missing', text: messageOf(error) };
  }
}

/** The machine and the adapters to examine. Tests pass others. */
export interface Surroundings {
  readonly machine: Machine;
  readonly connectable: ReadonlyMap<string, MakeTransport>;
}

export function doctorIn({ machine, connectable }: Surroundings): Command {
  return commandOf({
    name: 'doctor',
    summary: 'say what is found and missing for voices, journals, engines and other adapters',
    usage,
    async run(args, print) {
      const call = readCall(args);
      const names = call.named.length > 0 ? call.named : call.all ? NAMES : TRANSPORTS;
      const sections: Section[] = [];
      for (const section of examine(machine, names)) {
        const make = call.connect && section.isReady ? connectable.get(section.name) : undefined;
        sections.push(make ? withTrial(section, await tryConnection(make)) : section);
      }
      print(call.json ? `${JSON.stringify(sections, null, 2)}\n` : report(sections));
      const [here, ...transports] = sections;
      const wanted = call.named.length > 0 ? transports : [];
      return [here, ...wanted].every((section) => section?.isReady) ? 0 : 1;
    },
  });
}

export const doctor: Command = doctorIn({ machine: thisMachine(), connectable: CONNECTABLE });

function withTrial(section: Section, trial: Finding): Section {
  const isReady = section.isReady && trial.status !== 'missing';
  return { ...section, findings: [...section.findings, trial], isReady };
}

interface Call {
  readonly named: readonly string[];
  readonly all: boolean;
  readonly connect: boolean;
  readonly json: boolean;
}

function readCall(args: readonly string[]): Call {
  const { positionals, values } = argumentsOf({
    args: [...args],
    allowPositionals: true,
    options: {
      all: { type: 'boolean' },
      connect: { type: 'boolean' },
      json: { type: 'boolean' },
    },
  });
  const unknown = positionals.find((name) => !NAMES.includes(name));
  if (unknown !== undefined)
    throw new WrongCall(`Expected an adapter of ${NAMES.join(', ')}, got \`${unknown}\``);
  const { all = false, connect = false, json = false } = values;
  return { named: positionals, all, connect, json };
}

const MARKS = { ok: '  ok     ', note: '  note   ', missing: '  MISSING' } as const;

function report(sections: readonly Section[]): string {
  return sections
    .map(({ name, findings, isReady }) =>
      [
        `${name}: ${isReady ? 'ready' : 'not ready'}`,
        ...findings.map(({ status, text }) => `${MARKS[status]} ${text}`),
        '',
      ].join('\n'),
    )
    .join('\n');
}
