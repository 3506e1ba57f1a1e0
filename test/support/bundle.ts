// Bundles sources with all their imports, as an app does for a browser. The result names every built-in Node.js module
// that the imports reach.

import { isBuiltin } from 'node:module';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'vite';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface Bundle {
  /** A script that sets the global `bundled` to the exports of the entry. */
  readonly code: string;
  /** The imports of built-in modules: `node:fs (src/a.ts)`. */
  readonly builtIns: readonly string[];
}

/**
 * @param entry A file path, relative to the root of the repository.
 * @param conditions The conditions for package exports. No conditions stand for an unknown platform.
 */
export async function bundle(
  entry: string,
  conditions: readonly ('browser' | 'worker')[] = [],
): Promise<Bundle> {
  const builtIns: string[] = [];
  const refuseBuiltIns: Plugin = {
    name: 'refuse-built-ins',
    enforce: 'pre',
    resolveId(specifier, importer = entry) {
      if (!isBuiltin(specifier)) return null;
      builtIns.push(`${specifier} (${importer.replace(root, '')})`);
      return { id: specifier, external: true };
    },
  };
  const built = await build({
    root,
    configFile: false,
    envFile: false,
    logLevel: 'silent',
    plugins: [refuseBuiltIns],
    resolve: { conditions: [...conditions], mainFields: ['module', 'main'] },
    build: {
      write: false,
      minify: false,
      target: 'es2023',
      lib: { entry: root + entry, formats: ['iife'], name: 'bundled' },
    },
  });
  const [output] = [built].flat();
  const chunk = output && 'output' in output ? output.output[0] : undefined;
  if (!chunk) throw new Error(`Expected ${entry} to be bundled`);
  return { code: chunk.code, builtIns };
}
