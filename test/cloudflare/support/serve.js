// One workerd, in a process of its own, so that both can be killed: `node serve.js <worker> <folder> <port>`. Says its address.
// A line `evict <name>` throws the object with this name out of memory, its sockets stay open, and says `evicted`. Its own
// lines begin with `serve: `; the others are those of the Worker.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Miniflare } from 'miniflare';

const [worker, folder, port] = process.argv.slice(2);
const miniflare = new Miniflare({
  name: 'chats',
  host: '127.0.0.1',
  port: Number(port),
  cf: false,
  compatibilityDate: '2026-07-01',
  compatibilityFlags: ['nodejs_compat'],
  modules: [{ type: 'ESModule', path: 'worker.mjs', contents: readFileSync(worker, 'utf8') }],
  bindings: JSON.parse(process.env.WORKER_ENV),
  durableObjects: { CHAT: { className: 'Chat', useSQLite: true } },
  durableObjectsPersist: folder,
});
process.stdout.write(`serve: ${await miniflare.ready}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const [, name] = line.split(' ');
  try {
    await miniflare.unsafeEvictDurableObject('chats', 'Chat', { name, webSockets: 'hibernate' });
    process.stdout.write('serve: evicted\n');
  } catch (error) {
    process.stdout.write(`serve: ${String(error)}\n`);
  }
}
