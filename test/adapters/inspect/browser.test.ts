// The Stately Inspector in a page's window; both sides come from the package.

import { createBrowserReceiver, type StatelyInspectionEvent } from '@statelyai/inspect';
import { expect, test } from 'vitest';
import { createInspector, type InspectorMessage } from '../../../src/adapters/inspect/index.ts';
import { loadPeer } from '../../../src/adapters/inspect/viewers.ts';
import { simulatedEnvironment } from '../../../src/testing/doubles/simulated-environment.ts';
import { seen } from './support/receiver.ts';
import { stamped, startInteraction, startSession } from './support/ride.ts';

type Listener = (event: { readonly data: unknown }) => void;

/** A window that receives messages and may open other windows. */
class FakeWindow {
  readonly listeners = new Set<Listener>();
  readonly opened: [string, string][] = [];
  readonly self: FakeWindow = this;
  readonly top: FakeWindow = this;
  opener: FakeWindow | null = null;
  other: FakeWindow | null = null;

  open(url: string, name: string): FakeWindow | null {
    this.opened.push([url, name]);
    return this.other;
  }
  addEventListener(_type: string, listener: Listener): void {
    this.listeners.add(listener);
  }
  removeEventListener(_type: string, listener: Listener): void {
    this.listeners.delete(listener);
  }
  postMessage(data: unknown): void {
    for (const listener of this.listeners) listener({ data: structuredClone(data) });
  }
}

/** Loads or reloads the inspector's window, whose new receiver reports that it is ready. */
function load(inspectorWindow: FakeWindow) {
  const view = seen();
  inspectorWindow.listeners.clear();
  createBrowserReceiver({ window: inspectorWindow as never }).subscribe(
    (message: StatelyInspectionEvent) => view.take(message as unknown as InspectorMessage),
  );
  return view;
}

test('sends everything to a window that opens late or reloads', async () => {
  const environment = simulatedEnvironment();
  const page = new FakeWindow();
  const inspectorWindow = new FakeWindow();
  page.other = inspectorWindow;
  inspectorWindow.opener = page;
  const inspector = await createInspector({ environment, to: { mode: 'browser', window: page } });
  expect(page.opened).toEqual([['https://stately.ai/inspect', 'xstateinspector']]);

  const session = startSession(inspector.inspect);
  for (let index = 0; index < 300; index += 1)
    session.send(stamped({ type: 'client.attached' as const }));
  startInteraction(inspector.inspect);
  await environment.advance(50);

  const view = load(inspectorWindow);
  await environment.advance(50);
  expect(view.actor('ses_1')).toMatchObject({ type: '@xstate.actor', parentId: undefined });
  expect(view.actor('ses_1/interaction')).toMatchObject({ parentId: 'ses_1' });
  session.send(stamped({ type: 'session.start' as const }));
  await environment.advance(50);
  expect(view.events('ses_1').map(({ event }) => event.type)).toEqual(['session.start']);

  const again = load(inspectorWindow);
  await environment.advance(50);
  expect(again.snapshots('ses_1').at(-1)?.snapshot.value).toMatchObject({
    connection: 'connecting',
  });
  expect(again.events('ses_1')).toEqual([]);
  // The earlier page gets no more messages, so there is no duplicate.
  expect(view.snapshots('ses_1')).toHaveLength(2);

  await inspector.stop();
  session.send(stamped({ type: 'session.close' as const }));
  await environment.advance(50);
  expect(again.events('ses_1')).toEqual([]);
});

test('explains what to do if no window is available', async () => {
  await expect(
    createInspector({ environment: simulatedEnvironment(), to: { mode: 'browser' } }),
  ).rejects.toMatchObject({ name: 'ConfigurationError', code: 'NO_WINDOW' });
});

test('names the command that installs a missing package', async () => {
  const missing = loadPeer('@statelyai/inspect', () =>
    Promise.reject(new Error('Cannot find package')),
  );
  await expect(missing).rejects.toMatchObject({
    name: 'ConfigurationError',
    code: 'MISSING_DEPENDENCY',
    message: expect.stringContaining('npm install @statelyai/inspect'),
  });
});

test.each([
  [{ to: { mode: 'relay', port: 70_000 } }, '`to.port`'],
  [{ to: { mode: 'relay', token: 'short' } }, '`to.token`'],
  [{ to: { mode: 'webSocket', url: 'http://127.0.0.1' } }, '`to.url`'],
  [{ to: { mode: 'sink' } }, '`to.send`'],
  [{ to: { mode: 'telepathy' } }, '`to.mode`'],
  [{ maxBytes: 100 }, '`maxBytes`'],
  [{ redact: 'yes' }, '`redact`'],
  [{ environment: undefined }, '`environment`'],
])('refuses %j, and names %s in the error', async (options, named) => {
  await expect(
    createInspector({ environment: simulatedEnvironment(), ...options } as never),
  ).rejects.toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining(named) });
});
