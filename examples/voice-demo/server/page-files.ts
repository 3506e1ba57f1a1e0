// The files of the page, as the browser asks for them: TypeScript without its types,
// and a few modules of node_modules. Only what is listed here can be read.

import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigurationError } from '../../../src/values/errors.ts';

export interface PageFile {
  readonly contentType: string;
  readonly body: string;
}

export interface PageFiles {
  /** The file at this path, or null. */
  read(path: string): PageFile | null;
  /** The value of the header `Content-Security-Policy`. */
  readonly contentSecurityPolicy: (port: number) => string;
}

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
};

/** Modules that the page imports by name. */
const modules: Readonly<Record<string, string>> = {
  preact: 'preact/dist/preact.mjs',
  'preact/hooks': 'preact/hooks/dist/hooks.mjs',
  htm: 'htm/dist/htm.mjs',
  'htm/preact': 'htm/preact/index.mjs',
  '@preact/signals': '@preact/signals/dist/signals.mjs',
  '@preact/signals-core': '@preact/signals-core/dist/signals-core.mjs',
};

const folders = ['page', 'shared'] as const;
const root = new URL('../', import.meta.url);

export function createPageFiles(): PageFiles {
  const vendor = new Map(
    Object.values(modules).map((path) => [`/vendor/${path}`, installedFile(path)]),
  );
  const importMap = JSON.stringify({
    imports: Object.fromEntries(
      Object.entries(modules).map(([name, path]) => [name, `/vendor/${path}`]),
    ),
  });
  const importMapHash = createHash('sha256').update(importMap).digest('base64');
  const cache = new Map<string, PageFile & { readonly changedAt: number }>();

  const load = (file: URL | string): PageFile | null => {
    const path = typeof file === 'string' ? file : fileURLToPath(file);
    const contentType = contentTypes[extname(path)];
    const stats = statSync(path, { throwIfNoEntry: false });
    if (!contentType || !stats?.isFile()) return null;
    const cached = cache.get(path);
    if (cached?.changedAt === stats.mtimeMs) return cached;
    const source = readFileSync(path, 'utf8');
    const body = path.endsWith('.ts')
      ? withoutTypes(source)
      : source.replace('<!-- import map -->', `<script type="importmap">${importMap}</script>`);
    const loaded = { contentType, body, changedAt: stats.mtimeMs };
    cache.set(path, loaded);
    return loaded;
  };

  return {
    read(path) {
      if (path === '/') return load(new URL('page/index.html', root));
      const installed = vendor.get(path);
      if (installed) return load(installed);
      // Plain names only: no dots that climb, nothing encoded.
      const [, folder, name] =
        /^\/([a-z]+)\/((?:[a-z0-9-]+\/)*[a-z0-9-]+\.[a-z]+)$/.exec(path) ?? [];
      if (!folders.some((each) => each === folder)) return null;
      return load(new URL(`${folder}/${name}`, root));
    },
    contentSecurityPolicy: (port) =>
      [
        "default-src 'none'",
        `script-src 'self' 'sha256-${importMapHash}'`,
        "style-src 'self'",
        "img-src 'self'",
        `connect-src 'self' ws://127.0.0.1:${port} ws://localhost:${port}`,
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ].join('; '),
  };
}

/** Where npm has put a file of a package: beside us or in any folder above. */
function installedFile(path: string): string {
  for (let folder = root; ; folder = new URL('../', folder)) {
    const file = new URL(`node_modules/${path}`, folder);
    if (statSync(file, { throwIfNoEntry: false })?.isFile()) return fileURLToPath(file);
    if (folder.pathname === new URL('../', folder).pathname)
      throw new ConfigurationError(
        'MISSING_DEPENDENCY',
        `The page needs ${path}, which is not installed: run \`npm install\``,
      );
  }
}

/** Node warns that this is experimental; the demo knows, and its start-up lines stay clean. */
function withoutTypes(source: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}
