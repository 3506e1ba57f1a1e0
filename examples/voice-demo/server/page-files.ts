// The files of the page, as the browser asks for them: TypeScript without its types, Preact, and `offstage/client`. There
// is no build, and nothing else can be read.

import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { findPackageJSON, stripTypeScriptTypes } from 'node:module';
import { dirname, extname, join } from 'node:path';

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
};

/** The modules that the page imports by name, and what the browser asks for instead. */
const modules: Readonly<Record<string, string>> = {
  'offstage/client': '/offstage/src/client/index.ts',
  preact: '/npm/preact/dist/preact.mjs',
  'preact/hooks': '/npm/preact/hooks/dist/hooks.mjs',
  htm: '/npm/htm/dist/htm.mjs',
  'htm/preact': '/npm/htm/preact/index.mjs',
  '@preact/signals': '/npm/@preact/signals/dist/signals.mjs',
  '@preact/signals-core': '/npm/@preact/signals-core/dist/signals-core.mjs',
};
const importMap = JSON.stringify({ imports: modules });
const importMapHash = createHash('sha256').update(importMap).digest('base64');

export const contentSecurityPolicy =
  `default-src 'none'; script-src 'self' 'sha256-${importMapHash}'; style-src 'self'; img-src 'self'; ` +
  `connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** Returns the file at this path, or null. */
export function pageFile(path: string): { readonly type: string; readonly body: string } | null {
  const file = path === '/' ? join(import.meta.dirname, '../page/index.html') : fileOf(path);
  const type = contentTypes[extname(file ?? '')];
  if (!file || !type || !statSync(file, { throwIfNoEntry: false })?.isFile()) return null;
  const source = readFileSync(file, 'utf8');
  if (file.endsWith('.ts')) return { type, body: withoutTypes(source) };
  return {
    type,
    body: source.replace('<!-- import map -->', `<script type="importmap">${importMap}</script>`),
  };
}

function fileOf(path: string): string | null {
  // Plain names only: no dots that climb, nothing encoded.
  const name = String.raw`((?:[a-z0-9-]+\/)*[a-z0-9-]+\.(?:ts|css|svg))`;
  const [, ours] = new RegExp(`^/page/${name}$`).exec(path) ?? [];
  if (ours) return join(import.meta.dirname, '../page', ours);
  const [, source] = new RegExp(`^/offstage/(src/${name})$`).exec(path) ?? [];
  if (source) return join(packageFolder('offstage'), source);
  const [, module, rest] = /^\/npm\/((?:@[\w-]+\/)?[\w-]+)\/(.*)$/.exec(path) ?? [];
  return Object.values(modules).includes(path) ? join(packageFolder(module), rest ?? '') : null;
}

function packageFolder(name = ''): string {
  return dirname(findPackageJSON(name, import.meta.url) ?? '');
}

/** Node.js warns that this is experimental; the demo knows, and its start-up lines stay clean. */
function withoutTypes(source: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}
