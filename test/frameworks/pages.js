// Bundles a page of Vue or Svelte. JavaScript, because the frameworks are not installed where the types are checked.

import { fileURLToPath } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import vue from '@vitejs/plugin-vue';
import { chromium } from 'playwright-core';
import { build } from 'vite';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Returns the script of a page, with all that it imports. */
export async function bundlePage(entry) {
  const built = await build({
    root: fileURLToPath(new URL('.', import.meta.url)),
    configFile: false,
    envFile: false,
    logLevel: 'silent',
    mode: 'development',
    plugins: [vue(), svelte({ configFile: false })],
    resolve: {
      alias: {
        'offstage/client': `${root}src/client/index.ts`,
        'offstage/ai-sdk-ui': `${root}src/ai-sdk-ui/index.ts`,
      },
    },
    build: { write: false, minify: false, target: 'es2023', rollupOptions: { input: entry } },
  });
  return [built].flat()[0].output[0].code;
}

/** As the other browser tests do, whose types need a page. */
export function launch() {
  const executablePath = process.env['CHROMIUM_PATH'];
  if (executablePath === undefined) throw new Error('Expected CHROMIUM_PATH to name a Chromium');
  return chromium.launch({
    executablePath,
    headless: true,
    args: ['--no-sandbox', '--disable-gpu'],
  });
}
