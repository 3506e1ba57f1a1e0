// The demo as `npm start` starts it, in this process, with Chromium as its client.

import { chromium, type Browser } from 'playwright-core';
import { ruleModel } from '../../../examples/voice-demo/rules/rule-model.ts';
import { startDemo, type Demo, type DemoOptions } from '../../../examples/voice-demo/demo.ts';
import { createBuiltInEngine } from '../../../src/adapters/local-voice/speech/built-in-engine.ts';
import type { SpeechEngine } from '../../../src/adapters/local-voice/speech/speech-engine.ts';
import { nodeEnvironment } from '../../../src/adapters/node/index.ts';
import { VoiceSession } from '../../../src/voice-session.ts';
import {
  createVoiceServer,
  type FakeVoiceModel,
  type VoiceServer,
  type VoiceWire,
} from '../../../src/testing/voice-server/index.ts';
import { forgetKeys } from '../../examples/voice-demo/support.ts';
import { createLeadResponder } from './lead-responder.ts';
import { SessionWatch } from './session-watch.ts';
import { Tab, type TabOptions } from './tab.ts';

/** Chromium as users have it, but without the browser's own network requests. */
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
  // A microphone exists; permission to use it is separate.
  '--use-fake-device-for-media-stream',
  // Background tabs run as if they were visible.
  '--disable-background-timer-throttling',
  '--disable-renderer-backgrounding',
  '--disable-backgrounding-occluded-windows',
];

/** The parts that the tests in one file share: a browser, and models that are loaded once. */
export interface Theatre<S extends Stage = Stage> {
  /** Starts a new demo. */
  open(): Promise<S>;
  close(): Promise<void>;
}

/** The demo with real speech on this machine. @param pace Multiplies the duration of the subagents' tasks. */
export async function buildTheatre(pace = 0.25): Promise<Theatre> {
  const engine: SpeechEngine = createBuiltInEngine();
  const [browser] = await Promise.all([launch(), engine.start()]);
  return {
    async open() {
      forgetKeys();
      return new Stage(browser, await start({ speech: engine, pace }));
    },
    async close() {
      await Promise.all([browser.close(), engine.close()]);
    },
  };
}

/** The demo with a voice server behind a real socket; the server is a fake that receives no audio. */
export async function buildRemoteTheatre(wire: VoiceWire): Promise<Theatre<RemoteStage>> {
  const browser = await launch();
  return {
    async open() {
      const environment = nodeEnvironment();
      const server = createVoiceServer({ environment, respond: createLeadResponder() });
      const { baseUrl } = await server.listen();
      const variables = {
        TRANSPORT: wire,
        OPENAI_API_KEY: 'any',
        OPENAI_BASE_URL: `${baseUrl}/v1`,
        GEMINI_API_KEY: 'any',
        GOOGLE_GEMINI_BASE_URL: baseUrl,
      };
      forgetKeys(variables);
      const demo = await start({ environment, model: ruleModel({ environment }) });
      return new RemoteStage(browser, demo, server);
    },
    close: () => browser.close(),
  };
}

/** Starts the demo, by default on any free port and with tasks that run four times as fast. */
function start(options: DemoOptions): Promise<Demo> {
  return startDemo({ port: 0, pace: 0.25, ...options });
}

export function launch(): Promise<Browser> {
  const executablePath = process.env['CHROMIUM_PATH'];
  if (executablePath === undefined) throw new Error('Expected CHROMIUM_PATH to name a Chromium');
  return chromium.launch({ executablePath, headless: true, args: flags });
}

export class Stage {
  readonly demo: Demo;
  readonly watch: SessionWatch;
  readonly #browser: Browser;
  readonly #tabs: Tab[] = [];

  constructor(browser: Browser, demo: Demo) {
    this.#browser = browser;
    this.demo = demo;
    if (!(demo.session instanceof VoiceSession)) throw new Error('Expected a voice session');
    this.watch = new SessionWatch(demo.session);
  }

  /** Opens the page in a new browser context, or in another tab of an existing one. */
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
      // Rendering sixty frames per second would take CPU time from the speech.
      reducedMotion: 'reduce',
    });
  }
}

export class RemoteStage extends Stage {
  readonly server: VoiceServer;

  constructor(browser: Browser, demo: Demo, server: VoiceServer) {
    super(browser, demo);
    this.server = server;
  }

  /** The newest connection, with the user and the voice model behind it. */
  get model(): FakeVoiceModel {
    const model = this.server.connections.at(-1);
    if (!model) throw new Error('Expected the demo to have connected');
    return model;
  }

  override async close(): Promise<void> {
    await super.close();
    await this.server.close();
  }
}

/** Returns what went wrong in the page or the session even though the test passed. */
export function troubles({ watch }: Stage, ...tabs: readonly Tab[]): readonly string[] {
  return [
    ...tabs.flatMap(({ problems }) => problems),
    ...watch.of('error.reported').map(({ message }) => message),
  ];
}
