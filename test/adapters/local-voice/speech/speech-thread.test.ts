import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { CancelledError, ProviderError } from '../../../../src/values/errors.ts';
import { SpeechThread } from '../../../../src/adapters/local-voice/speech/built-in-engine.ts';

const speech = { samples: new Int16Array(10), sampleRateHz: 16_000 };
const request = { text: 'x', voice: 'slt', speed: 1 };

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function fragileThread(): SpeechThread {
  const url = new URL('../support/fragile-worker.ts', import.meta.url);
  const thread = new SpeechThread('transcriber', url);
  onTestFinished(() => thread.close());
  return thread;
}

describe('a speech thread', () => {
  test('SPEECH-THREAD-1, SPEECH-THREAD-2: rejects calls when it dies, and restarts on the next call', async () => {
    const thread = fragileThread();
    await thread.start();
    expect(await thread.call('transcribe', speech)).toBe('call 1');
    const lost = thread.call('synthesize', request);
    const deadly = thread.call('detect', { streamId: 1, sound: speech });
    for (const call of [lost, deadly]) {
      await expect(call).rejects.toBeInstanceOf(ProviderError);
      await expect(call).rejects.toMatchObject({ code: 'SPEECH_ENGINE_FAILED', retryable: true });
    }
    expect(await thread.call('transcribe', speech)).toBe('call 1');
  });

  test('SPEECH-THREAD-1: rejects a call that throws inside the thread, and still handles the next call', async () => {
    const thread = fragileThread();
    await expect(thread.call('forget', { streamId: 1 })).rejects.toThrow('it threw: a bug');
    await thread.start();
  });

  test('SPEECH-THREAD-1: rejects pending and later calls when it is closed', async () => {
    const thread = fragileThread();
    await thread.start();
    const pending = thread.call('synthesize', request);
    const closed = thread.close();
    await expect(pending).rejects.toBeInstanceOf(CancelledError);
    await closed;
    await expect(thread.call('transcribe', speech)).rejects.toBeInstanceOf(CancelledError);
  });

  test("SPEECH-THREAD-3: closes only after the model's current step has ended", async () => {
    const thread = fragileThread();
    const steps = new Int32Array(new SharedArrayBuffer(12));
    const samples = new Int16Array(steps.buffer);
    const pending = thread.call('transcribe', { samples, sampleRateHz: 16_000 });
    while (Atomics.load(steps, 0) === 0) await nextTurn();
    const closed = thread.close();
    await expect(pending).rejects.toBeInstanceOf(CancelledError);
    // A thread that had been stopped from outside would be gone by now.
    await nextTurn();
    Atomics.store(steps, 1, 1);
    Atomics.notify(steps, 1);
    await closed;
    expect([...steps]).toEqual([1, 1, 1]);
  });

  test("SPEECH-THREAD-3: keeps the exit code of a process that exits during a model's step", async () => {
    const program = new URL('../support/exits-in-a-step.ts', import.meta.url);
    const child = spawn(process.execPath, [fileURLToPath(program)], { stdio: 'ignore' });
    expect(await once(child, 'exit')).toEqual([7, null]);
  });

  test('fails with a ProviderError when its models cannot be loaded', async () => {
    const thread = new SpeechThread('nobody' as never);
    onTestFinished(() => thread.close());
    await expect(thread.start()).rejects.toMatchObject({ name: 'ProviderError' });
  });
});
