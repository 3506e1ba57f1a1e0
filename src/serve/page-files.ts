// The files of a page, which a browser can load without a build: the page's folder, and the modules of installed
// packages that its scripts import by name. TypeScript is sent with its types stripped, in the form that Node.js runs.
//
//   /            → index.html, with an import map       /a/b.ts → the file in the folder
//   /modules/…   → JavaScript of the named packages
//
// Does not: bundle, or transform anything else. An app with a bundler serves the bundler's output instead.
//
// Invariants
//   PAGE-FILES-1. Only files of known types in the folder are read, and JavaScript of the packages that the app has
//       named. A path is refused if it is percent-encoded, leads out of the folder, or contains a name that starts with
//       a dot.
//   PAGE-FILES-2. The page runs no other scripts: the policy allows the import map by its hash.

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import type * as nodeModule from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { propertiesOf } from '../values/json.ts';
import { contentSecurityPolicy } from '../adapters/listen/page-headers.ts';
import { ConfigurationError } from '../values/errors.ts';

/** A page that needs no build. */
export interface PageFiles {
  /** The folder with `index.html` and the other files that the page loads. */
  readonly folder: string | URL;
  /**
   * Maps the names that the page's scripts import to modules of installed packages, such as `{ react: 'preact/compat'
   * }`. The browser variant of the package (`exports`) is used. It must be an ES module, and the names that it imports
   * must be listed too. Clients can then read all JavaScript in these packages. `offstage/client` is always included.
   * @defaultValue {}
   */
  readonly modules?: Readonly<Record<string, string>>;
}

/**
 * Everything that may come before the content of `head`. A page may omit the tags of `head`. Source: HTML, "13.1.2.4
 * Optional tags".
 */
const START_OF_HEAD =
  /^\uFEFF?\s*(?:<!doctype[^<>]*>\s*|<!--[\s\S]*?-->\s*)*(?:<html(?:\s[^<>]*)?>\s*(?:<!--[\s\S]*?-->\s*)*)?(?:<head(?:\s[^<>]*)?>)?/i;

export interface PageFile {
  readonly type: string;
  readonly body: string | Buffer;
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.ts': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.avif': 'image/avif',
  '.gif': 'image/gif',
  '.ico': 'image/x-icon',
  '.jpg': 'image/jpeg',
  '.mp3': 'audio/mpeg',
  '.png': 'image/png',
  '.wasm': 'application/wasm',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
};

const OURS = 'offstage';
/** The relative path is the same in the sources and in the build output. */
const ourFolder = fileURLToPath(new URL('../..', import.meta.url));
const isSource = import.meta.url.endsWith('.ts');
const conditions = new Set(['browser', 'module', 'import', 'default']);
if (isSource) conditions.add('offstage-source');

export class PageReader {
  readonly contentSecurityPolicy: string;
  readonly #folder: string;
  /** The folders of the packages that the page imports. */
  readonly #packages = new Map<string, string>();
  readonly #importMap: string;

  /** @throws {ConfigurationError} `INVALID_OPTION`, `MISSING_DEPENDENCY` */
  constructor({ folder, modules = {} }: PageFiles) {
    this.#folder = typeof folder === 'string' ? folder : fileURLToPath(folder);
    if (!isFile(join(this.#folder, 'index.html')))
      throw new ConfigurationError(
        'INVALID_OPTION',
        `serveLocally(options).page: expected a folder with a file index.html, got ${this.#folder}`,
      );
    const named = { 'offstage/client': 'offstage/client', ...modules };
    const imports = Object.entries(named).map(([name, module]) => [name, this.#addressOf(module)]);
    this.#importMap = JSON.stringify({ imports: Object.fromEntries(imports) });
    const hash = createHash('sha256').update(this.#importMap).digest('base64');
    this.contentSecurityPolicy = contentSecurityPolicy({
      script: `'self' 'sha256-${hash}'`,
      style: "'self'",
      img: "'self' data:",
      font: "'self'",
      media: "'self'",
      manifest: "'self'",
      worker: "'self'",
      connect: "'self'",
    });
  }

  /** Returns the file for this path, or null if there is none. */
  read(path: string): PageFile | null {
    const file = this.#find(path.endsWith('/') ? `${path}index.html` : path);
    if (file === null) return null;
    const type = types[extname(file)];
    if (type === undefined) return null;
    if (!type.includes('charset')) return { type, body: readFileSync(file) };
    const text = readFileSync(file, 'utf8');
    if (file.endsWith('.ts')) return { type, body: withoutTypes(text) };
    if (!file.endsWith('.html')) return { type, body: text };
    const map = `<script type="importmap">${this.#importMap}</script>`;
    return { type, body: text.replace(START_OF_HEAD, (start) => start + map) };
  }

  #find(path: string): string | null {
    const [, name = '', rest = ''] = /^\/modules\/((?:@[\w-]+\/)?[\w-]+)\/(.+)$/.exec(path) ?? [];
    const folder = this.#packages.get(name);
    if (folder !== undefined) return /\.(?:m?js|ts)$/.test(rest) ? fileIn(folder, rest) : null;
    return fileIn(this.#folder, path.slice(1));
  }

  /** Returns the URL at which a browser requests a module of an installed package. */
  #addressOf(module: string): string {
    const [, name = '', subpath = ''] =
      /^((?:@[\w-]+\/)?[\w-]+)((?:\/[\w.-]+)*)$/.exec(module) ?? [];
    const folder = name === OURS ? ourFolder : packageFolder(name, this.#folder);
    if (folder === null)
      throw new ConfigurationError(
        'MISSING_DEPENDENCY',
        `serveLocally(options).page: the page imports "${module}", which is not installed: run \`npm install ${name || module}\``,
      );
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
    const file = exported(manifest, `.${subpath}`)?.replace(/^\.\//, '');
    if (file === undefined || fileIn(folder, file) === null)
      throw new ConfigurationError(
        'INVALID_OPTION',
        `serveLocally(options).page: expected a module for browsers, got "${module}", which its package does not export`,
      );
    this.#packages.set(name, folder);
    return `/modules/${name}/${file}`;
  }
}

/**
 *   PAGE-FILES-1. A name that ends in `.js` also matches the `.ts` file, because TypeScript sources import such names.
 */
function fileIn(folder: string, name: string): string | null {
  if (!/^(?:[\w@-][\w.@-]*\/)*[\w@-][\w.@-]*$/.test(name)) return null;
  const file = join(folder, name);
  if (isFile(file)) return file;
  const source = file.replace(/js$/, 'ts');
  return file.endsWith('.js') && isFile(source) ? source : null;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function packageFolder(name: string, from: string): string | null {
  if (name === '') return null;
  for (let folder = from, parent = dirname(folder); ; folder = parent, parent = dirname(folder)) {
    const found = join(folder, 'node_modules', name);
    if (existsSync(join(found, 'package.json'))) return found;
    if (parent === folder) return null;
  }
}

interface Manifest {
  readonly exports?: unknown;
  readonly module?: string;
  readonly main?: string;
}

/** Returns the file of a subpath under browser conditions, or undefined if the package does not export the subpath. */
function exported({ exports, module, main }: Manifest, subpath: string): string | undefined {
  if (exports === undefined) return subpath === '.' ? (module ?? main ?? 'index.js') : subpath;
  const isTable =
    typeof exports === 'object' && exports !== null && Object.keys(exports)[0]?.startsWith('.');
  let target = isTable ? propertiesOf(exports)[subpath] : subpath === '.' ? exports : undefined;
  while (typeof target === 'object' && target !== null)
    [, target] = Object.entries(target).find(([condition]) => conditions.has(condition)) ?? [];
  return typeof target === 'string' ? target : undefined;
}

let strip: typeof nodeModule.stripTypeScriptTypes | undefined;

/** Strips the types. The experimental warning of Node.js is suppressed, because the user has already seen it. */
function withoutTypes(source: string): string {
  // In a runtime without this function, a named import would fail.
  strip ??= (createRequire(import.meta.url)('node:module') as typeof nodeModule)
    .stripTypeScriptTypes;
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return strip(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}
