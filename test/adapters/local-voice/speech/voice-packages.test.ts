import { mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  loadOnnx,
  loadTokenizer,
  VOICE_PACKAGES,
  voiceFile,
  voiceFolder,
  voiceManifest,
} from '../../../../src/adapters/local-voice/speech/voice-packages.ts';
import { ConfigurationError } from '../../../../src/values/errors.ts';

/** Makes the voice look for its packages in a new folder. */
async function inEmptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'offstage-voice-'));
  vi.stubEnv('OFFSTAGE_VOICE_DIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  return folder;
}

describe('the packages of the built-in voice', () => {
  test('cause an error that names the folder and the install command if they are missing', async () => {
    const folder = await inEmptyFolder();
    const file = () => voiceFile('@ricky0123/vad-web', 'dist/silero_vad_v6.onnx');
    expect(file).toThrow(ConfigurationError);
    expect(file).toThrow(folder);
    expect(file).toThrow('npx offstage voice install');
    await expect(loadOnnx()).rejects.toMatchObject({ code: 'MISSING_DEPENDENCY' });
    await expect(loadTokenizer()).rejects.toMatchObject({ code: 'MISSING_DEPENDENCY' });
  });

  test('cause an error that names a missing file', async () => {
    await inEmptyFolder();
    mkdirSync(voiceFolder(), { recursive: true });
    const file = () => voiceFile('@ricky0123/vad-web', 'dist/silero_vad_v6.onnx');
    expect(file).toThrow(ConfigurationError);
    expect(file).toThrow(/lack .*silero_vad_v6\.onnx/);
  });

  test('cause an error that gives the reason if a package is damaged', async () => {
    await inEmptyFolder();
    const broken = join(voiceFolder(), 'node_modules', 'onnxruntime-node');
    mkdirSync(broken, { recursive: true });
    writeFileSync(join(broken, 'package.json'), '{"name":"onnxruntime-node","main":"gone.js"}');
    await expect(loadOnnx()).rejects.toMatchObject({ code: 'MISSING_DEPENDENCY' });
    await expect(loadOnnx()).rejects.toThrow(/cannot be loaded \(.*gone\.js/s);
  });

  test('VOICE-PACKAGES-1: have the same version and checksum in manifest and lock', () => {
    const { manifest, lock } = voiceManifest() as {
      manifest: { dependencies: Record<string, string> };
      lock: { packages: Record<string, { version: string; integrity: string }> };
    };
    for (const [name, { version, integrity }] of Object.entries(VOICE_PACKAGES)) {
      expect(version).toMatch(/^\d+\.\d+\.\d+$/);
      expect(integrity).toMatch(/^sha512-/);
      expect(manifest.dependencies[name]).toBe(version);
      expect(lock.packages[`node_modules/${name}`]).toEqual({ version, integrity });
    }
  });

  test('VOICE-PACKAGES-2: reside in a platform folder inside the configured one', async () => {
    const folder = await inEmptyFolder();
    expect(voiceFolder()).toContain(join(folder, `${process.platform}-${process.arch}-`));
    expect(voiceFolder('elsewhere')).toMatch(/elsewhere/);
    vi.stubEnv('OFFSTAGE_VOICE_DIR', '');
    vi.stubEnv('XDG_CACHE_HOME', '/cache');
    if (process.platform === 'linux')
      expect(voiceFolder()).toMatch(/^\/cache\/offstage\/voice\/linux-/);
  });
});
