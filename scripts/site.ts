// Builds the static site of the documents: `npm run site` writes docs/site/dist. The guide and the topics are the
// Markdown files of docs/; the reference is made from the docstrings and declarations of the public names.

import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import process, { stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { API, SymbolFlags } from 'typescript/unstable/sync';

const root = fileURLToPath(new URL('..', import.meta.url));
const site = join(root, 'docs/site');
const content = join(site, 'src/content/docs');
const REPOSITORY_FILE = /^(?:\.\.\/)*(?:src|test|examples|bench|scripts)\//;

/** Returns the documents that docs/README.md lists, each with its part of the site and its order in it. */
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
    // The sidebar replaces the index of the documents, and the reference the list of names.
    (page) => !['docs/README.md', 'docs/api.md'].includes(page),
  ),
  ...others,
];

/** Returns the path of a document in the site, without its ending. */
function slugOf(page: string): string {
  if (page === 'README.md') return 'index';
  const name = basename(page, '.md').toLowerCase();
  if (others.includes(page)) return `project/${name}`;
  if (page.startsWith('docs/design/')) return `design/${name}`;
  const { part } = listed.get(page) ?? {};
  if (part === undefined) throw new Error(`docs/README.md does not list ${page}`);
  return `${part}/${name}`;
}

/** Rewrites the links of a document: to pages of the site, or to text if the target is source code. */
function linked(page: string, text: string): string {
  return text.replaceAll(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (whole, image, label, link: string) => {
    if (/^(?:\w+:|#)/.test(link)) return whole;
    const [path = '', anchor] = link.split('#');
    const target = join(dirname(page), path);
    const folders = slugOf(page).split('/').length - 1;
    // An image is found beside its file, a page by its address, which ends with a slash.
    if (image) return `![${label}](./${'../'.repeat(folders)}${relative('docs', target)})`;
    const depth = slugOf(page) === 'index' ? '' : '../'.repeat(folders + 1);
    const known = target === 'docs/README.md' ? 'README.md' : target;
    if (target === 'docs/api.md') return `[${label}](${depth}reference/offstage/)`;
    if (!pages.includes(known)) return REPOSITORY_FILE.test(target) ? `\`${target}\`` : label;
    const slug = slugOf(known);
    return `[${label}](${depth}${slug === 'index' ? './' : `${slug}/`}${anchor ? `#${anchor}` : ''})`;
  });
}

/** Adds an anchor to each code of the catalogue. */
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

function reference(): void {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly 'offstage-source': string }>>;
  };
  const api = new API({ cwd: root });
  const [project] = api
    .updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] })
    .getProjects();
  if (!project) throw new Error('tsconfig.json was not opened');
  const { program, checker } = project;
  const subpaths = Object.entries(manifest.exports).filter(
    ([, entry]) => typeof entry !== 'string',
  );
  for (const [order, [subpath, entry]] of subpaths.entries()) {
    if (typeof entry === 'string') continue;
    const file = program.getSourceFile(join(root, entry['offstage-source']));
    const module = file && checker.getSymbolAtLocation(file);
    if (!module) throw new Error(`${subpath} is no module`);
    const parts = checker.getExportsOfModule(module).map((symbol) => {
      const isAlias = (symbol.flags & SymbolFlags.Alias) !== 0;
      const target = isAlias ? checker.getAliasedSymbol(symbol) : symbol;
      const [declaration] = target.declarations ?? [];
      const node = declaration?.resolve(project);
      const source = node ? node.getSourceFile().text.slice(node.getStart(), node.end) : '';
      return {
        name: symbol.name,
        says: target.getDocumentationComment(checker),
        tags: target.getJsDocTags(checker),
        shape: shapeOf(source),
      };
    });
    const name = `offstage${subpath.slice(1)}`;
    const body = parts
      .toSorted((a, b) => a.name.localeCompare(b.name))
      .map(
        ({ name: title, says, tags, shape }) =>
          `## ${title}\n\n${says}\n\n\`\`\`ts\n${shape}\n\`\`\`\n\n${tagged(tags)}`,
      )
      .join('\n');
    const slug = `reference/${name.replaceAll('/', '-')}`;
    write(
      slug,
      name,
      body,
      `sidebar:\n  order: ${100 + order}\ntableOfContents:\n  maxHeadingLevel: 2\n`,
    );
  }
  api.close();
}

interface Tag {
  readonly name: string;
  readonly text?: string | undefined;
}

/** The tags of a docstring that a reader needs: arguments, defaults, and the errors with a link to their cause. */
function tagged(tags: readonly Tag[]): string {
  const of = (name: string): readonly string[] =>
    tags
      .filter((tag) => tag.name === name)
      .map(({ text = '' }) => text.replaceAll(/\s+/g, ' ').trim());
  const list = (title: string, texts: readonly string[]): string =>
    texts.length === 0 ? '' : `**${title}**\n\n${texts.map((text) => `- ${text}`).join('\n')}\n\n`;
  return [
    list(
      'Arguments',
      of('param').map((text) => text.replace(/^(\w+)(?: -)?/, '`$1`:')),
    ),
    list('Returns', of('returns')),
    list('Default', of('defaultValue')),
    list('Throws', of('throws').map(withCodes)),
  ].join('');
}

const codes = new Set(
  [...readFileSync(join(root, 'docs/errors.md'), 'utf8').matchAll(/^\| `([A-Z_]+)`/gm)].map(
    ([, code = '']) => code,
  ),
);

function withCodes(text: string): string {
  return text
    .replace(/^\{(\w+)\}/, '`$1`')
    .replaceAll(/`([A-Z_]+)`/g, (whole, code: string) =>
      codes.has(code) ? `[${whole}](../errors/#${code.toLowerCase()})` : whole,
    );
}

/** Returns the declaration without the bodies of functions, and only the beginning of a value. */
function shapeOf(source: string): string {
  const lines: string[] = [];
  let depth = 0; // inside the body of a function or method
  for (const line of source.split('\n')) {
    if (depth === 0 && !/^\s*(?:readonly )?#|^\s*(?:private|protected) /.test(line))
      lines.push(line);
    const opens = /^(?:export )?(?:async )?function\b.*\{$|^\s+.*\).*\{$/.test(line);
    if (depth > 0 || opens) depth += count(line, '{') - count(line, '}');
  }
  const [first = ''] = lines;
  const isFunction = /^(?:export )?(?:async )?function\b/.test(source);
  if (isFunction) lines[lines.length - 1] = (lines.at(-1) ?? '').replace(/ \{$/, '');
  // For a constant the checker returns the text after its keyword.
  else if (!/^(?:export|abstract|class|interface|type)\b/.test(first)) lines[0] = `const ${first}`;
  const kept = lines.slice(0, 120).join('\n');
  return lines.length > 120 ? `${kept}\n// …` : kept;
}

function count(text: string, sign: string): number {
  return text.split(sign).length - 1;
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
reference();

const run = (...command: readonly [string, ...string[]]): void => {
  const [program, ...args] = command;
  const { status } = spawnSync(program, args, {
    cwd: site,
    stdio: 'inherit',
    env: { ...process.env, ASTRO_TELEMETRY_DISABLED: '1' },
  });
  if (status !== 0) process.exit(status ?? 1);
};
// Without a lock file: a new one would lack the binaries of other platforms, and `npm ci` would refuse it.
run('npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error');
run('npm', 'run', 'build');
// A wide table can then be scrolled by keyboard; an empty corner is no heading.
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
