// `offstage voice install` with a fake npm whose install the test defines.

import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { voiceFolder } from '../../src/adapters/local-voice/speech/voice-packages.ts';
import { voice } from '../../src/cli/voice/voice.ts';

const newFolder = () => mkdtemp(join(tmpdir(), 'offstage-voice-'));

/** Runs the command with a program that stands in for npm. */
async function run(npm: string, ...args: readonly string[]) {
  const tools = await newFolder();
  const program = join(tools, 'npm-cli.js');
  writeFileSync(program, npm);
  chmodSync(program, 0o755);
  vi.stubEnv('npm_execpath', program);
  vi.stubEnv('npm_config_package', './offstage.tgz');
  onTestFinished(() => void vi.unstubAllEnvs());
  const said: string[] = [];
  const status = await voice.run(
    args,
    (text) => said.push(text),
    (text) => said.push(text),
  );
  return { status, said: said.join('') };
}

/** Each package has a licence, one file that is used, and one that is not. */
const INSTALLS = `
const fs = require('node:fs'), path = require('node:path');
const { dependencies } = JSON.parse(fs.readFileSync('package.json', 'utf8'));
const lock = JSON.parse(fs.readFileSync('package-lock.json', 'utf8'));
if (process.argv[2] !== 'ci' || !process.argv.includes('--ignore-scripts')) process.exit(3);
if (process.env.npm_config_package !== undefined) process.exit(4);
for (const name of Object.keys(dependencies)) {
  if (!lock.packages['node_modules/' + name].integrity) process.exit(5);
  for (const file of ['LICENSE', 'package.json', 'dist/index.js', 'dist/silero_vad_v6.onnx',
    'dist/model/tiny/quantized/encoder_model.onnx', 'dist/model/base/encoder_model.onnx',
    'bin/napi-v6/' + process.platform + '/' + process.arch + '/x.node', 'bin/napi-v6/other/arch/x.node', 'src/index.ts']) {
    const at = path.join('node_modules', name, file);
    fs.mkdirSync(path.dirname(at), { recursive: true });
    fs.writeFileSync(at, 'x');
  }
}`;

/** The files of a package, sorted. */
const filesOf = (name: string): readonly string[] => {
  const root = join(voiceFolder(), 'node_modules', name);
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .toSorted();
};

describe('offstage voice install', () => {
  test('keeps only the files and licences that this platform needs, and installs nothing on a second call', async () => {
    const to = await newFolder();
    vi.stubEnv('OFFSTAGE_VOICE_DIR', to);
    const { status, said } = await run(INSTALLS, 'install');
    expect(said).toContain(`installed in ${voiceFolder()}`);
    expect(status).toBe(0);
    expect(filesOf('@ricky0123/vad-web')).toEqual([
      'LICENSE',
      'dist/silero_vad_v6.onnx',
      'package.json',
    ]);
    expect(filesOf('@moonshine-ai/moonshine-js')).toEqual([
      'LICENSE',
      'dist/model/tiny/quantized/encoder_model.onnx',
      'package.json',
    ]);
    const native = filesOf('onnxruntime-node').filter((file) => file.startsWith('bin/'));
    expect(native).toEqual([`bin/napi-v6/${process.platform}/${process.arch}/x.node`]);
    expect(filesOf('llama-tokenizer-js')).toHaveLength(9);
    expect(readdirSync(dirname(voiceFolder()))).toHaveLength(1);

    vi.stubEnv('OFFSTAGE_VOICE_DIR', to);
    const again = await run('process.exit(9)', 'install');
    expect(again).toMatchObject({
      status: 0,
      said: `The local voice is installed in ${voiceFolder()}\n`,
    });
    vi.stubEnv('OFFSTAGE_VOICE_DIR', to);
    expect((await run('process.exit(9)', 'install', '--force')).status).toBe(1);
    expect(existsSync(voiceFolder())).toBe(true);
  });

  test("VOICE-PACKAGES-2: keeps no files if npm fails, and prints npm's output", async () => {
    const to = await newFolder();
    const { status, said } = await run(
      'console.error("no network here"); process.exit(1)',
      'install',
      '--to',
      to,
    );
    expect(status).toBe(1);
    expect(said).toContain('npm ci failed: no network here');
    expect(readdirSync(to)).toEqual([]);
  });

  test("passes the project's npm settings to npm and removes them afterwards", async () => {
    const [to, project] = [await newFolder(), await newFolder()];
    mkdirSync(project, { recursive: true });
    writeFileSync(join(project, '.npmrc'), 'registry=http://127.0.0.1:1/\n');
    vi.spyOn(process, 'cwd').mockReturnValue(project);
    onTestFinished(() => void vi.restoreAllMocks());
    const needsIt = `if (!require('node:fs').existsSync('.npmrc')) process.exit(6);${INSTALLS}`;
    const { status } = await run(needsIt, 'install', '--to', to);
    expect(status).toBe(0);
    expect(readdirSync(voiceFolder(to)).toSorted()).toEqual([
      'node_modules',
      'package-lock.json',
      'package.json',
    ]);
  });

  test.each([
    [[], 'Expected `install`, got ``'],
    [['remove'], 'Expected `install`, got `remove`'],
    [['install', 'all'], 'got `install all`'],
    [['install', '--to', ''], 'Expected the name of a folder after --to'],
    [['install', '--where', 'x'], "Unknown option '--where'"],
  ])('prints the usage for the invalid call %j', async (args, words) => {
    const { status, said } = await run('process.exit(9)', ...args);
    expect(status).toBe(2);
    expect(said).toContain(words);
    expect(said).toContain('offstage voice install [--to <folder>]');
  });
});
