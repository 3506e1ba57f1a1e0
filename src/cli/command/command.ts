// The commands of `offstage`. The first argument selects the command.

import { parseArgs, type ParseArgsConfig } from 'node:util';
import { messageOf } from '../../values/errors.ts';
import { withoutHidden } from '../../values/visible.ts';

type Print = (text: string) => void;

export interface Command {
  readonly name: string;
  /** The command's line in the list of commands. */
  readonly summary: string;
  /** The full help text. */
  readonly usage: string;
  /**
   * Returns the exit status: 0 for success, 1 if a problem was found, 2 for invalid arguments.
   * @param print Writes the requested output.
   * @param complain Writes errors to standard error, so that a pipe receives only the output.
   */
  run(args: readonly string[], print: Print, complain: Print): Promise<number>;
}

/** The arguments do not match the usage. */
export class WrongCall extends Error {}

/** @throws {WrongCall} if the arguments do not match these options. */
export function argumentsOf<Config extends ParseArgsConfig>(config: Config) {
  try {
    return parseArgs<Config>(config);
  } catch (error) {
    throw new WrongCall(messageOf(error));
  }
}

/** Wraps a command that throws a `WrongCall`. The wrapper prints the message above the usage and returns 2. */
export function commandOf(command: Command): Command {
  return {
    ...command,
    async run(args, print, complain) {
      try {
        return await command.run(args, print, complain);
      } catch (error) {
        if (!(error instanceof WrongCall)) throw error;
        complain(`${error.message}\n\n${command.usage}`);
        return 2;
      }
    },
  };
}

/** Runs the command that `args` names. Returns the exit status. */
export async function runCommand(
  commands: readonly Command[],
  args: readonly string[],
  { version, ...terminal }: { print: Print; complain: Print; version: string },
): Promise<number> {
  // Control characters in text from a user or a server would move the cursor or change its colours.
  const print = (text: string): void => terminal.print(withoutHidden(text));
  const complain = (text: string): void => terminal.complain(withoutHidden(text));
  const [name, ...rest] = args;
  const wantsHelp = (text: string | undefined): boolean => text === '--help' || text === '-h';
  if (name === undefined) {
    complain(overview(commands));
    return 2;
  }
  if (name === '--version' || name === '-v') {
    print(`${version}\n`);
    return 0;
  }
  if (name === 'help' || wantsHelp(name)) {
    const asked = commands.find((command) => command.name === rest[0]);
    print(asked?.usage ?? overview(commands));
    return 0;
  }
  const command = commands.find((one) => one.name === name);
  if (!command) {
    complain(`Expected a command, got \`${name}\`\n\n${overview(commands)}`);
    return 2;
  }
  if (rest.some(wantsHelp)) {
    print(command.usage);
    return 0;
  }
  return command.run(rest, print, complain);
}

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}   ${summary}`);
  return `offstage <command>

${lines.join('\n')}

offstage help <command> says more; offstage --version prints the version. Each command prints JSON with --json.
Results go to standard output, problems to standard error.

Exit status: 0 for success, 1 for a problem that was found, 2 for a wrong call.
`;
}
