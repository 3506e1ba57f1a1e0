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

/** The place of a document in the site, without its ending. */
function slugOf(page: string): string {
  if (page === 'README.md') return 'index';
  if (page.startsWith('docs/guide/') || page.startsWith('docs/design/'))
    return page.slice('docs/'.length, -'.md'.length);
  const name = basename(page, '.md').toLowerCase();
  const isReference = ['errors', 'guarantees', 'architecture'].includes(name);
  return `${isReference ? 'reference' : 'topics'}/${name}`;
}

const pages = [
  'README.md',
  ...globSync('docs/**/*.md', { cwd: root, exclude: ['docs/site/**'] }).filter(
    // The index of the documents is the sidebar, the list of names the reference.
    (page) => !['docs/README.md', 'docs/api.md'].includes(page),
  ),
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
];

/** Rewrites the links of a document: to pages of the site, or to text where the target is source code. */
function linked(page: string, text: string): string {
  return text.replaceAll(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (whole, image, label, link: string) => {
    if (/^(?:\w+:|#)/.test(link)) return whole;
    const [path = '', anchor] = link.split('#');
    const target = join(dirname(page), path);
    const folders = slugOf(page).split('/').length - 1;
    // An image is found beside the file, a page by its address, which ends with a slash.
    if (image) return `![${label}](./${'../'.repeat(folders)}${relative('docs', target)})`;
    const depth = slugOf(page) === 'index' ? '' : '../'.repeat(folders + 1);
    const known = target === 'docs/README.md' ? 'README.md' : target;
    if (target === 'docs/api.md') return `[${label}](${depth}reference/offstage/)`;
    if (!pages.includes(known)) return REPOSITORY_FILE.test(target) ? `\`${target}\`` : label;
    const slug = slugOf(known);
    return `[${label}](${depth}${slug === 'index' ? './' : `${slug}/`}${anchor ? `#${anchor}` : ''})`;
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
        shape: shapeOf(source),
      };
    });
    const name = `offstage${subpath.slice(1)}`;
    const body = parts
      .toSorted((a, b) => a.name.localeCompare(b.name))
      .map(
        ({ name: title, says, shape }) => `## ${title}\n\n${says}\n\n\`\`\`ts\n${shape}\n\`\`\`\n`,
      )
      .join('\n');
    const slug = `reference/${name.replaceAll('/', '-')}`;
    write(
      slug,
      name,
      body,
      `sidebar:\n  order: ${order}\ntableOfContents:\n  maxHeadingLevel: 2\n`,
    );
  }
  api.close();
}

/** The declaration without the bodies of functions, and of a value its beginning. */
function shapeOf(source: string): string {
  const lines: string[] = [];
  let depth = 0; // inside the body of a function or method
  for (const line of source.split('\n')) {
    if (depth === 0 && !/^\s*(?:readonly )?#|^\s*(?:private|protected) /.test(line))
      lines.push(line);
    const opens = /^(?:export )?(?:async )?function\b.*\{$|^\s+.*\).*\{$/.test(line);
    if (depth > 0 || opens) depth += count(line, '{') - count(line, '}');
  }
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
  write(slugOf(page), title, linked(page, text.replace(/^# .+\n/m, '')));
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
run('npm', 'install', '--no-audit', '--no-fund');
run('npm', 'run', 'build');
stdout.write(
  'docs/site/dist: serve it with any static server, such as `npx serve docs/site/dist`.\n',
);
