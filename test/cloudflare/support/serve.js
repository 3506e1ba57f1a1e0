// One workerd, in a process of its own, so that both can be killed: `node serve.js <worker> <folder>`. Says its address.

import { readFileSync } from 'node:fs';
import { Miniflare } from 'miniflare';

const [worker, folder] = process.argv.slice(2);
const miniflare = new Miniflare({
  host: '127.0.0.1',
  port: 0,
  cf: false,
  compatibilityDate: '2026-07-01',
  compatibilityFlags: ['nodejs_compat'],
  modules: [{ type: 'ESModule', path: 'worker.mjs', contents: readFileSync(worker, 'utf8') }],
  bindings: { MODEL_URL: process.env.MODEL_URL, INPUT_TIMEOUT_MS: process.env.INPUT_TIMEOUT_MS },
  durableObjects: { CHAT: { className: 'Chat', useSQLite: true } },
  durableObjectsPersist: folder,
});
process.stdout.write(`${await miniflare.ready}\n`);
