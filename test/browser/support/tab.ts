// The demo's page in one tab: what a person does on it, and the messages over its WebSocket.

import type { Locator, Page } from 'playwright-core';
import type { ClientFrame, ServerFrame } from '../../../src/client/protocol.ts';
import { echoInto, listenToSpeaker, plugInMicrophone, recordRoom, sayInto } from './microphone.ts';

export interface TabOptions {
  /** @defaultValue the link that the demo prints */
  readonly url?: string;
  /** `ours`: the test speaks into the microphone. `refused`: the user denies access to it. @defaultValue 'ours' */
  readonly microphone?: 'ours' | 'refused';
  /** How loud the loudspeaker is in the microphone, in decibels, without echo cancellation. */
  readonly echoDb?: number;
  /** `window.__recording` returns everything said and heard. */
  readonly isRecorded?: boolean;
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: 'light' | 'dark';
}

type Sent<T extends ClientFrame['type']> = Extract<ClientFrame, { type: T }>;
type Received<T extends ServerFrame['type']> = Extract<ServerFrame, { type: T }>;

export class Tab {
  readonly page: Page;
  /** Errors that the page did not expect, and warnings from the browser. */
  readonly problems: string[] = [];
  readonly #sent: ClientFrame[] = [];
  readonly #received: ServerFrame[] = [];
  #audioPackets = 0;

  private constructor(page: Page) {
    this.page = page;
    page.on('pageerror', (error) => this.problems.push(`page: ${error.message}`));
    page.on('console', (message) => {
      const text = message.text();
      // The browser logs this when a page tries to play audio before the first click.
      if (text.startsWith('The AudioContext was not allowed to start')) return;
      if (['error', 'warning'].includes(message.type())) this.problems.push(`console: ${text}`);
    });
    page.on('websocket', (socket) => {
      socket.on('framesent', ({ payload }) => {
        if (typeof payload === 'string') this.#sent.push(JSON.parse(payload) as ClientFrame);
      });
      socket.on('framereceived', ({ payload }) => {
        if (typeof payload !== 'string') this.#audioPackets += 1;
        else this.#received.push(JSON.parse(payload) as ServerFrame);
      });
    });
  }

  static async open(
    page: Page,
    url: string,
    { microphone = 'ours', echoDb, isRecorded }: TabOptions,
  ): Promise<Tab> {
    const tab = new Tab(page);
    if (microphone === 'ours') await plugInMicrophone(page);
    if (echoDb !== undefined) await echoInto(page, echoDb);
    if (isRecorded) await recordRoom(page);
    await listenToSpeaker(page);
    await page.goto(url);
    return tab;
  }

  sent<T extends ClientFrame['type']>(type: T): Sent<T>[] {
    return this.#sent.filter((message): message is Sent<T> => message.type === type);
  }

  received<T extends ServerFrame['type']>(type: T): Received<T>[] {
    return this.#received.filter((message): message is Received<T> => message.type === type);
  }

  /** The number of packets received with the lead agent's voice. */
  get audioPackets(): number {
    return this.#audioPackets;
  }

  /** How much of an item was played, in milliseconds, report by report. */
  playedMs(itemId: string): number[] {
    return this.sent('playout')
      .filter((report) => report.itemId === itemId)
      .map(({ playedMs }) => playedMs);
  }

  /** The names under which an item was played: its id, and another name for each time that it resumed. */
  namesOf(itemId: string): readonly string[] {
    const names = this.sent('playout').map((report) => report.itemId);
    return [...new Set([itemId, ...names.filter((name) => name.startsWith(`${itemId}~`))])];
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name });
  }

  /** The line below the name, which shows the page's connection to the lead agent. */
  get status(): Locator {
    return this.page.getByRole('status').first();
  }

  async startTalking(): Promise<void> {
    await this.button('Start talking').click();
    await this.page.getByText('Connected', { exact: true }).waitFor();
  }

  /** Resumes the voice after a reload, because a fresh page may need a click before it can play audio. */
  async goOnTalking(): Promise<void> {
    const button = this.button('Go on talking');
    const field = this.page.getByLabel('Type to the lead agent');
    await button.or(field).first().waitFor();
    if (await button.isVisible()) await button.click();
    await this.page.getByText('Connected', { exact: true }).waitFor();
  }

  say(text: string): Promise<void> {
    return sayInto(this.page, text);
  }

  async type(text: string): Promise<void> {
    await this.page.getByLabel('Type to the lead agent').fill(text);
    await this.page.keyboard.press('Enter');
  }

  /** The question card that contains this text. */
  question(text: string): Locator {
    return this.page.getByRole('article').filter({ hasText: text });
  }

  /** A line of the conversation once it is complete. */
  caption(text: string | RegExp): Locator {
    return this.page.locator('[data-part=line][aria-busy=false]').filter({ hasText: text });
  }

  /** Waits until the speaker is audible or silent. */
  async untilSpeaker(state: 'sounds' | 'is silent'): Promise<void> {
    await this.page.waitForFunction(
      (sounds) => (sounds ? window.__loudness() > 0.01 : window.__loudness() === 0),
      state === 'sounds',
      // A background tab paints no frames to wait for.
      { polling: 50 },
    );
  }
}

/** Returns the elements that extend beyond the right edge of the page. */
export function overflowing(tab: Tab): Promise<string[]> {
  return tab.page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    const wide = scrollWidth > clientWidth ? [`the page: ${scrollWidth} of ${clientWidth} px`] : [];
    const isClipped = (element: Element | null): boolean =>
      element !== null &&
      (getComputedStyle(element).overflowX !== 'visible' || isClipped(element.parentElement));
    const beyond = [...document.querySelectorAll('body *')].filter(
      (element) =>
        element.getBoundingClientRect().right > innerWidth + 1 && !isClipped(element.parentElement),
    );
    return [...wide, ...beyond.map((element) => `${element.tagName}.${element.className}`)];
  });
}
