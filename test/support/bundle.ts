// Bundles sources with all their imports, like an app for a browser. The result names every built-in module of
// Node.js that the imports reach.

import { isBuiltin } from 'node:module';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'vite';

const root = fileURLToPath(new URL('../..', import.meta.url));

export interface Bundle {
  /** A script that sets the global `bundled` to the exports of the entry. */
  readonly code: string;
  /** Each import of a built-in module: `node:fs (src/a.ts)`. */
  readonly builtIns: readonly string[];
}

/**
 * @param entry a file, from the root of the repository.
 * @param conditions of package exports; none stands for an unknown platform.
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
