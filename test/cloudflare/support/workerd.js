// Bundles a Worker and runs it in workerd, in processes that are killed with SIGKILL.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

/** The AI SDK's gateway asks for built-in modules by their short names; wrangler does the same for its users. */
const builtins = {
  name: 'builtins',
  setup(builder) {
    builder.onResolve({ filter: /^(path|fs|os)$/ }, ({ path }) => ({ path, namespace: 'builtin' }));
    builder.onLoad({ filter: /.*/, namespace: 'builtin' }, ({ path }) => ({
      contents: `export * from 'node:${path}'; export { default } from 'node:${path}'`,
    }));
  },
};

export async function bundle(worker, outfile) {
  await build({
    entryPoints: [at(`../worker/${worker}`)],
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['workerd', 'worker', 'import', 'default'],
    external: ['cloudflare:*', 'node:*'],
    alias: {
      'journal-conformance': at('../../../src/testing/journal-conformance/journal-conformance.ts'),
      'suite-of-homes': at('../../suites/homes/errands.ts'),
      'offstage/cloudflare': at('../../../src/adapters/cloudflare/index.ts'),
      offstage: at('../../../src/index.ts'),
      'offstage/subagents': at('../../../src/entries/subagents.ts'),
    },
    nodePaths: [at('../../../node_modules')],
    plugins: [builtins],
    outfile,
    logLevel: 'error',
  });
}

export async function start(worker, folder, env, port = 0) {
  const child = spawn(process.execPath, [at('serve.js'), worker, folder, String(port)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // A group of its own: workerd is a child of that process.
    detached: true,
    env: { ...process.env, WORKER_ENV: JSON.stringify(env) },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const said = async () => {
    for (;;) {
      const { value = 'serve: it has ended' } = await lines.next();
      if (value.startsWith('serve: ')) return value.slice('serve: '.length);
    }
  };
  const url = await said();
  return {
    url,
    async evict(name) {
      child.stdin.write(`evict ${name}\n`);
      const answer = await said();
      if (answer !== 'evicted') throw new Error(answer);
    },
    async kill() {
      const gone = once(child, 'exit');
      process.kill(-Number(child.pid), 'SIGKILL');
      await gone;
    },
  };
}
