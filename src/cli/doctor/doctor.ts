// `offstage doctor`: lists the requirements of the voice transports that this machine meets, and those that it
// lacks.

import { parseArgs } from 'node:util';
import { messageOf } from '../../values/errors.ts';
import type { Command } from '../command/command.ts';
import { examine, type Finding, type Machine, type Section } from './findings.ts';
import { thisMachine } from './machine.ts';
import { REQUIREMENTS } from './requirements.ts';
import { CONNECTABLE, tryConnection, type MakeTransport } from './try-connection.ts';

const NAMES = REQUIREMENTS.map(({ name }) => name);

const usage = `offstage doctor [transport …] [--connect] [--json]

Says what is found and what is missing for the voice transports; for all of them, or for those
that are named: ${NAMES.join(', ')}.

  --connect   also open a connection to each (but local-voice) and close it again
  --json      print the findings as JSON

Exit status: 0 when this machine and every transport that is named can be used, 1 when not,
2 for a wrong call. A transport that is not named may lack something.
`;

/** The machine and the transports to examine; tests pass others. */
export interface Surroundings {
  readonly machine: Machine;
  readonly connectable: ReadonlyMap<string, MakeTransport>;
}

export function doctorIn({ machine, connectable }: Surroundings): Command {
  return {
    name: 'doctor',
    summary: 'say what is found and missing for the voice transports',
    usage,
    async run(args, print) {
      const call = readCall(args);
      if (typeof call === 'string') {
        print(`${call}\n\n${usage}`);
        return 2;
      }
      const names = call.named.length > 0 ? call.named : NAMES;
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
  };
}

export const doctor: Command = doctorIn({ machine: thisMachine(), connectable: CONNECTABLE });

function withTrial(section: Section, trial: Finding): Section {
  const isReady = section.isReady && trial.status !== 'missing';
  return { ...section, findings: [...section.findings, trial], isReady };
}

interface Call {
  readonly named: readonly string[];
  readonly connect: boolean;
  readonly json: boolean;
}

/** Returns the parsed call, or a message about its mistake. */
function readCall(args: readonly string[]): Call | string {
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { connect: { type: 'boolean' }, json: { type: 'boolean' } },
    });
    const unknown = positionals.find((name) => !NAMES.includes(name));
    if (unknown !== undefined)
      return `Expected a transport of ${NAMES.join(', ')}, got \`${unknown}\``;
    return { named: positionals, connect: values.connect ?? false, json: values.json ?? false };
  } catch (error) {
    return messageOf(error);
  }
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
