// A command of `offstage`, and how one is chosen.

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** All that there is to know about calling it. */
  readonly usage: string;
  /** Returns the exit status: 0 all is well, 1 it is not, 2 the call was wrong. */
  run(args: readonly string[], print: (text: string) => void): Promise<number>;
}

/** Runs what `args` name. Returns the exit status. */
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
