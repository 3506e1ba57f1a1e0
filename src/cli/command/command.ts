// The commands of `offstage`, and the choice of one by the first argument.

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** The full help text. */
  readonly usage: string;
  /** Returns the exit status: 0 for success, 1 for a problem that was found, 2 for a wrong call. */
  run(args: readonly string[], print: (text: string) => void): Promise<number>;
}

/** Runs the command that `args` name. Returns the exit status. */
export async function runCommand(
  commands: readonly Command[],
  args: readonly string[],
  print: (text: string) => void,
): Promise<number> {
  const [name, ...rest] = args;
  const wantsHelp = (text: string | undefined): boolean => text === '--help' || text === '-h';
  if (name === undefined || name === 'help' || wantsHelp(name)) {
    const asked = commands.find((command) => command.name === rest[0]);
    print(asked?.usage ?? overview(commands));
    return name === undefined ? 2 : 0;
  }
  const command = commands.find((one) => one.name === name);
  if (!command) {
    print(`Expected a command, got \`${name}\`\n\n${overview(commands)}`);
    return 2;
  }
  if (rest.some(wantsHelp)) {
    print(command.usage);
    return 0;
  }
  return command.run(rest, print);
}

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}   ${summary}`);
  return `offstage <command>\n\n${lines.join('\n')}\n\noffstage help <command> says more.\n`;
}
