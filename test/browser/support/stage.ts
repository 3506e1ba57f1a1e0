// The demo as it is started by `npm start`, in this process, and Chromium to look at it.

import { chromium, type Browser } from 'playwright-core';
import { startDemo, type Demo } from '../../../examples/voice-demo/demo.ts';
import { createBuiltInEngine } from '../../../src/adapters/local-voice/speech/built-in-engine.ts';
import type { SpeechEngine } from '../../../src/adapters/local-voice/speech/speech-engine.ts';
import { VoiceSession } from '../../../src/index.ts';
import { SessionWatch } from './session-watch.ts';
import { Tab, type TabOptions } from './tab.ts';

/** Chromium as people have it, but silent towards the network. */
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  // There is a microphone; whether the page may use it is another matter.
  '--use-fake-device-for-media-stream',
  // Tabs in the background go on as if they were looked at.
  '--disable-background-timer-throttling',
  '--disable-renderer-backgrounding',
  '--disable-backgrounding-occluded-windows',
];

/** What the tests of one file share: a browser, and models that are loaded once. */
export interface Theatre {
  /** Starts the demo anew. */
  open(): Promise<Stage>;
  close(): Promise<void>;
}

export async function buildTheatre(): Promise<Theatre> {
  const engine: SpeechEngine = createBuiltInEngine();
  const [browser] = await Promise.all([launch(), engine.start()]);
  return {
    open: () => Stage.open(browser, engine),
    async close() {
      await Promise.all([browser.close(), engine.close()]);
    },
  };
}

function launch(): Promise<Browser> {
  const executablePath = process.env['CHROMIUM_PATH'];
  if (executablePath === undefined) throw new Error('Expected CHROMIUM_PATH to name a Chromium');
  return chromium.launch({ executablePath, headless: true, args: flags });
}

export class Stage {
  readonly demo: Demo;
  readonly watch: SessionWatch;
  readonly #browser: Browser;
  readonly #tabs: Tab[] = [];

  private constructor(browser: Browser, demo: Demo) {
    this.#browser = browser;
    this.demo = demo;
    if (!(demo.session instanceof VoiceSession)) throw new Error('Expected a voice session');
    this.watch = new SessionWatch(demo.session);
  }

  static async open(browser: Browser, engine: SpeechEngine): Promise<Stage> {
    // Its own rules, whatever keys this machine has; and work that is done four times as fast.
    const demo = await startDemo({ port: 0, variables: {}, pace: 0.25, speech: engine });
    return new Stage(browser, demo);
  }

  /** Opens the page in a browser of its own, or in another tab beside one. */
  async visit(options: TabOptions & { readonly beside?: Tab } = {}): Promise<Tab> {
    const context = options.beside?.page.context() ?? (await this.#newContext(options));
    const page = await context.newPage();
    const tab = await Tab.open(page, options.url ?? this.demo.url, options);
    this.#tabs.push(tab);
    return tab;
  }

  async close(): Promise<void> {
    for (const { page } of this.#tabs) await page.context().close();
    await this.demo.close();
  }

  #newContext({ width = 1280, height = 800, colorScheme = 'light' }: TabOptions) {
    return this.#browser.newContext({
      viewport: { width, height },
      colorScheme,
      // Sixty pictures a second that nobody sees would cost the time that speech needs.
      reducedMotion: 'reduce',
    });
  }
}

/** What went wrong in the page or the session, though the test went well. */
export function troubles({ watch }: Stage, ...tabs: readonly Tab[]): readonly string[] {
  return [
    ...tabs.flatMap(({ problems }) => problems),
    ...watch.of('error.reported').map(({ message }) => message),
  ];
}
