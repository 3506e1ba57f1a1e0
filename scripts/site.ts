// Builds the static site of the documents: `npm run site` writes docs/site/dist. The guide and the topics are the
// Markdown files in docs/; docs/site/reference.ts generates the reference from the declarations of the public names.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import process, { stdout } from 'node:process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const site = join(root, 'docs/site');
const content = join(site, 'src/content/docs');
const REPOSITORY_FILE = /^(?:\.\.\/)*(?:src|test|examples|bench|scripts)\//;

/**
 * Returns the documents that docs/README.md lists, each with its section of the site and its position in that section.
 */
function contents(): ReadonlyMap<string, { readonly part: string; readonly order: number }> {
  const found = new Map<string, { readonly part: string; readonly order: number }>();
  for (const section of readFileSync(join(root, 'docs/README.md'), 'utf8').split(/^## /m)) {
    const part = /^\w+/.exec(section)?.[0].toLowerCase() ?? '';
    for (const [, link = ''] of section.matchAll(/\]\(([\w/-]+\.md)\)/g))
      if (!found.has(`docs/${link}`)) found.set(`docs/${link}`, { part, order: found.size });
  }
  return found;
}

const listed = contents();
const others = ['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'];
const pages = [
  'README.md',
  ...globSync('docs/**/*.md', { cwd: root, exclude: ['docs/site/**'] }).filter(
    // The sidebar replaces the index of the documents, and the reference replaces the list of names.
    (page) => !['docs/README.md', 'docs/api.md'].includes(page),
  ),
  ...others,
];

/** Returns the path of a document in the site, without the extension. */
function slugOf(page: string): string {
  if (page === 'README.md') return 'index';
  const name = basename(page, '.md').toLowerCase();
  if (others.includes(page)) return `project/${name}`;
  if (page.startsWith('docs/design/')) return `design/${name}`;
  const { part } = listed.get(page) ?? {};
  if (part === undefined) throw new Error(`docs/README.md does not list ${page}`);
  return `${part}/${name}`;
}

/** Rewrites the links in a document: to pages of the site, or to plain text if the target is source code. */
function linked(page: string, text: string): string {
  return text.replaceAll(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (whole, image, label, link: string) => {
    if (/^(?:\w+:|#)/.test(link)) return whole;
    const [path = '', anchor] = link.split('#');
    const target = join(dirname(page), path);
    const folders = slugOf(page).split('/').length - 1;
    // An image is found relative to its file, a page relative to its URL, which ends with a slash.
    if (image) return `![${label}](./${'../'.repeat(folders)}${relative('docs', target)})`;
    const depth = slugOf(page) === 'index' ? '' : '../'.repeat(folders + 1);
    const known = target === 'docs/README.md' ? 'README.md' : target;
    if (target === 'docs/api.md') return `[${label}](${depth}reference/offstage/)`;
    if (!pages.includes(known)) return REPOSITORY_FILE.test(target) ? `\`${target}\`` : label;
    const slug = slugOf(known);
    return `[${label}](${depth}${slug === 'index' ? './' : `${slug}/`}${anchor ? `#${anchor}` : ''})`;
  });
}

/** Adds an anchor to each code in the catalogue. */
function anchored(page: string, text: string): string {
  if (page !== 'docs/errors.md') return text;
  return text.replaceAll(/^\| `([A-Z_]+)`/gm, (_, code: string) => {
    return `| <span id="${code.toLowerCase()}"></span>\`${code}\``;
  });
}

function write(slug: string, title: string, body: string, more = ''): void {
  const file = join(content, `${slug}.md`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `---\ntitle: ${JSON.stringify(title)}\n${more}---\n\n${body}`);
}

rmSync(content, { recursive: true, force: true });
for (const page of pages) {
  const text = readFileSync(join(root, page), 'utf8');
  const title = /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? basename(page);
  const order = listed.get(page)?.order;
  write(
    slugOf(page),
    title,
    anchored(page, linked(page, text.replace(/^# .+\n/m, ''))),
    order === undefined ? '' : `sidebar:\n  order: ${order}\n`,
  );
}
cpSync(join(root, 'docs/images'), join(content, 'images'), { recursive: true });

const run = async (cwd: string, ...[program, ...args]: readonly [string, ...string[]]) => {
  const env = { ...process.env, ASTRO_TELEMETRY_DISABLED: '1' };
  const [code] = await once(spawn(program, args, { cwd, stdio: 'inherit', env }), 'exit');
  if (code !== 0) process.exit(Number(code ?? 1));
};
rmSync(join(site, '.types'), { recursive: true, force: true });
await Promise.all([
  // Installs without a lock file: a new one would lack the binaries for other platforms, and `npm ci` would refuse it.
  run(site, 'npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'),
  // `npm run check` checks the types.
  run(
    root,
    'tsc',
    ...'-p tsconfig.build.json --noCheck --emitDeclarationOnly --outDir docs/site/.types'.split(
      ' ',
    ),
  ),
]);
await run(site, 'npm', 'run', 'build');
// Makes wide tables scrollable by keyboard, and keeps an empty corner from being a heading.
for (const page of globSync('**/*.html', { cwd: join(site, 'dist') })) {
  const file = join(site, 'dist', page);
  const html = readFileSync(file, 'utf8')
    .replaceAll('<table>', '<table tabindex="0">')
    .replaceAll(/<th(\b[^>]*)><\/th>/g, '<td$1></td>');
  writeFileSync(file, html);
}
stdout.write(
  'docs/site/dist: serve it with any static server, such as `npx serve docs/site/dist`.\n',
);
