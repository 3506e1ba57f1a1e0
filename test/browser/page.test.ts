// The demo's page: with the keyboard, on a small screen, without a microphone, in two tabs, and for a visitor without
// a valid link.

import { describe, expect, test } from 'vitest';
import { troubles } from './support/stage.ts';
import { overflowing, type Tab } from './support/tab.ts';
import { theatreOfFile } from './support/theatre.ts';

const open = theatreOfFile();

describe('the page by keyboard alone', () => {
  test('starts a session, asks a question and accepts an answer on its card', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit();
    const { keyboard } = tab.page;
    await tab.button('Type instead').waitFor();
    await tabTo(tab, 'Type instead');
    await keyboard.press('Enter');
    await tab.page.getByText('Connected', { exact: true }).waitFor();
    // The field has the focus, because the button that was pressed is gone.
    await keyboard.type('book me a ride to the airport');
    await keyboard.press('Enter');

    const card = tab.question('Which ride to the airport');
    await card.getByText(/is being asked|say it or press it/).waitFor();
    await tabTo(tab, /^Premium/);
    await keyboard.press('Space');
    await watch.until('it is answered', ({ questions }) => questions[0]?.answer === 'Premium');
    await tab.page.getByText('Answered: Premium').waitFor();
    // The answer was not spoken, so the script has a separate line for it.
    const script = tab.page.getByRole('log', { name: 'What was said' });
    await script.getByText('You answered the ride booker: Premium.').waitFor();

    // The end of the script stays in view when the window shrinks.
    await tab.page.setViewportSize({ width: 1280, height: 320 });
    await expect
      .poll(() =>
        script.evaluate((box) => ({
          isScrolled: box.scrollTop > 0,
          isAtEnd: box.scrollHeight - box.scrollTop - box.clientHeight < 2,
        })),
      )
      .toEqual({ isScrolled: true, isAtEnd: true });
    await tab.page.setViewportSize({ width: 1280, height: 800 });

    // The digit keys also answer, wherever the focus is.
    await keyboard.press('/');
    await keyboard.type('book me a table for two');
    await keyboard.press('Enter');
    await keyboard.press('Escape');
    const table = tab.question('Which table for 2');
    await table.getByText(/is being asked|say it or press it/).waitFor();
    await keyboard.press('2');
    await watch.until('the other is answered', ({ questions }) =>
      questions.some(({ answer }) => answer === 'French'),
    );
    expect(troubles(stage, tab)).toEqual([]);
  });
});

describe('the page on a screen of 375 px', () => {
  test('fits without horizontal scrolling', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit({ width: 375, height: 740 });
    await tab.button('Start talking').waitFor();
    expect(await overflowing(tab)).toEqual([]);
    // One of the suggestions, pressed before the conversation has started.
    await tab.button(/^“Book me a ride to the airport and a table for two.”/).click();
    await tab.question('Which table for 2').getByText('2nd in line').waitFor();
    expect(await overflowing(tab)).toEqual([]);
    await tab.question('Which ride').getByRole('button', { name: 'Economy' }).click();
    await tab
      .question('Which table')
      .getByRole('button', { name: 'Italian', disabled: false })
      .click();
    await watch.until('a result is told', ({ deliveries }) =>
      deliveries.some(({ kind, state }) => kind === 'result' && state === 'playing'),
    );
    // A card's text leaves room for its button. Both are read at once, because the delivery takes only a few seconds.
    const room = await tab.page.getByText('is being told').evaluate((words) => {
      const dismiss = words.closest('li')?.querySelector('button[aria-label^="Dismiss"]');
      if (!dismiss) return null;
      const [button, text] = [dismiss.getBoundingClientRect(), words.getBoundingClientRect()];
      return Math.max(button.left - text.right, button.top - text.bottom);
    });
    expect(room).toBeGreaterThanOrEqual(0);
    expect(await overflowing(tab)).toEqual([]);
    expect(troubles(stage, tab)).toEqual([]);
  });
});

describe('the page in light and dark', () => {
  test('has a contrast of at least 3:1 at the edge of each control', async () => {
    const stage = await open();
    const tab = await stage.visit();
    await tab.button('Type instead').click();
    await tab.type('book me a ride to the airport');
    await tab.question('Which ride').getByRole('button', { name: 'Economy' }).waitFor();
    // A field with the focus has a different border.
    await tab.page.locator(':focus').blur();
    for (const colorScheme of ['light', 'dark'] as const) {
      await tab.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await tab.page.locator(`:root[data-theme="${colorScheme}"]`).waitFor();
      // Colours may fade from one theme to the other.
      await expect.poll(() => tab.page.evaluate(() => document.getAnimations().length)).toBe(0);
      const edges = await edgesOfControls(tab);
      expect(edges.map(({ name }) => name)).toEqual(
        expect.arrayContaining([expect.stringMatching(/Economy/), expect.stringMatching(/^input/)]),
      );
      expect(edges.filter(({ contrast }) => contrast < 3)).toEqual([]);
    }
    expect(troubles(stage, tab)).toEqual([]);
  });
});

describe('the page of a typed conversation', () => {
  test('plays no audio, counts displayed text as read, and neither interrupts nor repeats the text', async () => {
    const stage = await open();
    const { watch } = stage;
    const tab = await stage.visit();
    await tab.button('Type instead').click();
    await watch.until('it greets', ({ transcript }) =>
      transcript.find(({ role, text }) => role === 'assistant' && text.length > 20),
    );
    await watch.untilQuiet();
    await tab.type('tell me a joke');
    await tab.caption(/actor get lost|two agents the same question/).waitFor();
    await watch.untilQuiet();
    await tab.type('thanks');
    await watch.untilQuiet();
    expect(await tab.page.evaluate(() => window.__loudness())).toBe(0);
    expect(watch.of('speech.interrupted')).toEqual([]);
    const { transcript } = watch.state;
    expect(transcript.map(({ role }) => role).join(' ')).toBe(
      'assistant user assistant user assistant',
    );
    expect(transcript.filter(({ interrupted }) => interrupted)).toEqual([]);
    expect(troubles(stage, tab)).toEqual([]);
  });

  test('shows an order update after a button is pressed', async () => {
    const stage = await open();
    const tab = await stage.visit();
    // The button starts the conversation.
    await tab.button('An order is out for delivery').click();
    await tab.caption('Order 1042, an oak desk, is out for delivery.').waitFor();
    expect(troubles(stage, tab)).toEqual([]);
  });
});

describe('the page without a valid link', () => {
  test.each(['#not-the-token', ''])('refuses %j and shows the reason', async (fragment) => {
    const stage = await open();
    const url = stage.demo.url.replace(/#.*$/, fragment);
    const tab = await stage.visit({ url });
    await tab.page.getByRole('heading', { name: 'This link is not valid any more' }).waitFor();
    expect(await tab.status.textContent()).toContain('Not admitted');
    expect(tab.received('welcome')).toEqual([]);
    expect(stage.watch.state.connection).toBe('created');
  });
});

describe('the page without a microphone', () => {
  test('lets a user without a microphone type, and still answers by voice', async () => {
    const stage = await open();
    const tab = await stage.visit({ microphone: 'refused' });
    await tab.startTalking();
    await tab.page.getByText('The microphone was refused').waitFor();
    await tab.type('what can you do?');
    await tab.caption('what can you do?').waitFor();
    await tab.untilSpeaker('sounds');
    await tab.caption(/You can also ask|Try two at once/).waitFor();
    expect(troubles(stage, tab)).toEqual([]);
  });
});

describe('push to talk', () => {
  test('works with the pointer and with the keyboard (Space to talk, `m` to mute)', async () => {
    const stage = await open();
    const tab = await stage.visit();
    await tab.startTalking();
    const { keyboard, mouse } = tab.page;
    const script = tab.page.getByRole('log', { name: 'What was said' });
    const untilHeard = (isHeard: boolean): Promise<void> =>
      talk.and(tab.page.locator(`[aria-pressed="${isHeard}"]`)).waitFor();
    await tab.page.getByLabel('Push to talk').check();
    const talk = tab.button('Hold to talk');
    await untilHeard(false);
    await talk.hover();
    await mouse.down();
    await untilHeard(true);
    await mouse.up();
    await untilHeard(false);
    for (const [place, key] of [
      [talk, 'Enter'],
      [talk, ' '],
      [script, ' '],
    ] as const) {
      await place.focus();
      await keyboard.down(key);
      await untilHeard(true);
      await keyboard.up(key);
      await untilHeard(false);
    }
    const field = tab.page.getByLabel('Type to the lead agent');
    await field.focus();
    await keyboard.down(' ');
    expect(await talk.getAttribute('aria-pressed')).toBe('false');
    await keyboard.up(' ');
    await keyboard.type('m');
    expect(await field.inputValue()).toBe(' m');

    await tab.page.getByLabel('Open microphone').check();
    await tab.button('Mute the microphone').waitFor();
    await script.focus();
    await keyboard.press('m');
    await tab.button('Unmute the microphone').waitFor();
    await keyboard.press(' ');
    await tab.button('Mute the microphone').click();
    await tab.page.getByText('You are muted.').waitFor();
    expect(troubles(stage, tab)).toEqual([]);
  });
});

describe('the page in two tabs', () => {
  test('shows everything in both tabs but plays speech in only one tab at a time', async () => {
    const stage = await open();
    const { watch } = stage;
    const first = await stage.visit();
    await first.startTalking();
    await first.untilSpeaker('sounds');
    const second = await stage.visit({ beside: first });
    await second.startTalking();
    await first.page.getByText('The voice is in another tab').waitFor();
    // The speech that was cut off in the first tab can no longer be heard there.
    await first.untilSpeaker('is silent');

    const packetsOfFirst = first.audioPackets;
    await first.type('thank you');
    await second.untilSpeaker('sounds');
    await first.caption('thank you').waitFor();
    await second.caption('thank you').waitFor();
    await watch.untilQuiet();
    expect(first.audioPackets).toBe(packetsOfFirst);

    await first.button('Talk here').click();
    await second.page.getByText('The voice is in another tab').waitFor();
    await second.type('tell me a joke');
    await first.untilSpeaker('sounds');
    // The tab that has the voice closes, and the other one takes over.
    await first.page.close();
    await second.page.getByText('Connected', { exact: true }).waitFor();
    await second.type('hello');
    await second.untilSpeaker('sounds');
    expect(troubles(stage, first, second)).toEqual([]);
  });
});

/** Presses Tab until the control with this name has the focus. */
async function tabTo(tab: Tab, name: string | RegExp): Promise<void> {
  const seen: string[] = [];
  for (let presses = 0; presses < 40; presses += 1) {
    await tab.page.keyboard.press('Tab');
    const focused = tab.page.locator(':focus');
    const label = await focused.evaluate(
      (element) => element.getAttribute('aria-label') ?? element.textContent ?? '',
    );
    const text = label.trim();
    if (typeof name === 'string' ? text === name : name.test(text)) {
      // A focus without a visible outline does not count.
      expect(await focused.evaluate((element) => getComputedStyle(element).outlineStyle)).not.toBe(
        'none',
      );
      return;
    }
    seen.push(text);
  }
  throw new Error(`Expected Tab to reach ${String(name)}, it went through: ${seen.join(' | ')}`);
}

/** Returns each control that has a border, and the contrast of the border against the background (WCAG 2, 1.4.11). */
function edgesOfControls(tab: Tab): Promise<{ name: string; contrast: number }[]> {
  return tab.page.evaluate(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    if (!canvas) throw new Error('Expected a canvas');
    const luminance = (...layers: string[]): number => {
      for (const layer of layers) {
        canvas.fillStyle = layer;
        canvas.fillRect(0, 0, 1, 1);
      }
      const [r = 0, g = 0, b = 0] = [...canvas.getImageData(0, 0, 1, 1).data].map((byte) =>
        byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4,
      );
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return [...document.querySelectorAll('button, input, textarea, select')].flatMap((control) => {
      // The border of a text field is that of its form.
      const framed =
        control.localName === 'button' ? control : (control.closest('form') ?? control);
      const { borderTopWidth, borderTopColor } = getComputedStyle(framed);
      const isSeen = control.checkVisibility({ opacityProperty: true, visibilityProperty: true });
      if (!isSeen || control.matches(':disabled') || borderTopWidth === '0px') return [];
      const around: string[] = [];
      for (let box = framed.parentElement; box; box = box.parentElement)
        around.unshift(getComputedStyle(box).backgroundColor);
      const behind = luminance('white', ...around);
      const edge = luminance('white', ...around, borderTopColor);
      const contrast = (Math.max(edge, behind) + 0.05) / (Math.min(edge, behind) + 0.05);
      const name = `${control.localName} ${control.getAttribute('aria-label') ?? control.textContent}`;
      return [{ name, contrast: Math.round(contrast * 100) / 100 }];
    });
  });
}
