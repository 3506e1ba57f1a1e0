// Runs the pages of docs/guide/vue-svelte.md, unchanged, in Chromium: a button answers a question, and hostile text
// does no harm.

import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { serve } from '../../src/serve/index.ts';
import { rideSession } from '../serve/support/served.ts';
import { bundlePage, launch } from './pages.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = fileURLToPath(new URL('.pages', import.meta.url));
const HOSTILE = '<img src=x onerror="throw new Error(1)">';

const document = readFileSync(`${root}docs/guide/vue-svelte.md`, 'utf8');
const fence = (language: string): string =>
  new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(document)?.[1] ?? '';

/** The AI SDK's chat with the three lines from the document. */
const chat = `import { connect } from 'offstage/client';
import { chatTransport } from 'offstage/ai-sdk-ui';
${fence('js')}
export { chat, transport };`;

const pages: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  vue: {
    'Page.vue': fence('vue'),
    'main.js': `import { createApp } from 'vue'; import Page from './Page.vue';
createApp(Page).mount('#root');`,
  },
  svelte: {
    'Page.svelte': fence('svelte'),
    'main.js': `import { mount } from 'svelte'; import Page from './Page.svelte';
mount(Page, { target: document.querySelector('#root') });`,
  },
  'vue, with Chat': {
    'chat.js': `import { Chat } from '@ai-sdk/vue';\n${chat}`,
    'Page.vue': `<script setup>
import { chat, transport } from './chat.js';
</script>
<template>
  <template v-for="{ id, role, parts } in chat.messages" :key="id">
    <template v-for="(part, index) in parts" :key="index">
      <p v-if="part.type === 'text'">{{ role }}: {{ part.text }}</p>
      <p v-if="part.type === 'data-subagent'">{{ part.data.name }}: {{ part.data.state }}</p>
      <fieldset v-if="part.type === 'data-question' && part.data.state === 'open'">
        <button v-for="option in part.data.options" :key="option.id" @click="transport.answer(part.data.requestId, { optionId: option.id })">{{ option.label }}</button>
      </fieldset>
    </template>
  </template>
  <form @submit.prevent="chat.sendMessage({ text: $event.target.words.value })"><input name="words" aria-label="Message" /></form>
</template>`,
    'main.js': `import { createApp } from 'vue'; import Page from './Page.vue';
createApp(Page).mount('#root');`,
  },
  'svelte, with Chat': {
    'chat.js': `import { Chat } from '@ai-sdk/svelte';\n${chat}`,
    'Page.svelte': `<script>
  import { chat, transport } from './chat.js';
  const send = (event) => (event.preventDefault(), chat.sendMessage({ text: event.target.words.value }));
</script>
{#each chat.messages as { id, role, parts } (id)}
  {#each parts as part, index (index)}
    {#if part.type === 'text'}<p>{role}: {part.text}</p>{/if}
    {#if part.type === 'data-subagent'}<p>{part.data.name}: {part.data.state}</p>{/if}
    {#if part.type === 'data-question' && part.data.state === 'open'}
      <fieldset>
        {#each part.data.options as option (option.id)}
          <button onclick={() => transport.answer(part.data.requestId, { optionId: option.id })}>{option.label}</button>
        {/each}
      </fieldset>
    {/if}
  {/each}
{/each}
<form onsubmit={send}><input name="words" aria-label="Message" /></form>`,
    'main.js': `import { mount } from 'svelte'; import Page from './Page.svelte';
mount(Page, { target: document.querySelector('#root') });`,
  },
};

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
});

test.each(Object.keys(pages))('%s', async (name) => {
  const own = `${folder}/${name.replaceAll(/\W+/g, '-')}`;
  mkdirSync(own, { recursive: true });
  for (const [file, text] of Object.entries(pages[name] ?? {}))
    writeFileSync(`${own}/${file}`, text);
  const code = await bundlePage(`${own}/main.js`);
  const session = rideSession();
  const web = serve({
    session: () => session,
    authorize: ({ token }) =>
      token === 'the token of Ann' ? { sessionId: 's1', user: 'ann', role: 'user' } : null,
  });
  const http = createServer((request, response) =>
    web.handle(request, response, () => {
      const isScript = request.url === '/page.js';
      response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' });
      response.end(
        isScript
          ? code
          : '<!doctype html><title>A page</title><div id="root"></div><script type="module" src="/page.js"></script>',
      );
    }),
  );
  http.on('upgrade', (request, socket, head) => void web.upgrade(request, socket, head));
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const page = await browser.newPage();
  onTestFinished(async () => {
    await page.close();
    await web.close();
    http.closeAllConnections();
    http.close();
    await session.close();
  });
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  await page.goto(`http://127.0.0.1:${(http.address() as AddressInfo).port}/`);
  const say = async (text: string): Promise<void> => {
    await page.getByLabel('Message').fill(text);
    await page.keyboard.press('Enter');
  };
  await say('use book_ride');
  await page.getByRole('button', { name: 'Premium' }).click();
  await page.getByText('book_ride: completed').waitFor();
  await page.getByText('assistant: Told:').waitFor();
  expect(await page.locator('fieldset').count()).toBe(0);
  await say(HOSTILE);
  await page.getByText(`assistant: You said: ${HOSTILE}`).waitFor();
  expect(await page.locator('img').count()).toBe(0);
  expect(await page.getByText('user:').count()).toBe(2);
  expect(problems).toEqual([]);
});
