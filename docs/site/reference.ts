// The reference has a page for each subpath, with every public name, its signature, its members and their docstrings.
// TypeDoc reads the declarations in `.types`, where scripts/site.ts puts them, and this file writes TypeDoc's model as
// Markdown. It fails if a docstring contains a dead link, or if more members lack a docstring than UNDESCRIBED allows.

import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exit, stdout } from 'node:process';
import {
  Application,
  BaseRouter,
  DefaultTheme,
  JSX,
  PageEvent,
  PageKind,
  ReflectionKind,
  makeRecursiveVisitor,
  type Comment,
  type CommentDisplayPart,
  type DeclarationReflection,
  type Reflection,
  type SomeType,
} from 'typedoc';

/**
 * How many members of public names, and of the types that these names consist of, may lack a docstring. The number may
 * only decrease.
 */
const UNDESCRIBED = 0;

const root = join(import.meta.dirname, '../..');
const declarations = join(import.meta.dirname, '.types');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
};
const entries = Object.entries(manifest.exports).flatMap(([subpath, entry]) =>
  typeof entry === 'string'
    ? []
    : [{ name: `offstage${subpath.slice(1)}`, file: entry.types.replace('./dist/', '') }],
);
const codes = new Set(
  [...readFileSync(join(root, 'docs/errors.md'), 'utf8').matchAll(/^\| `([A-Z_]+)`/gm)].map(
    ([, code = '']) => code,
  ),
);

/**
 * Maps a name to the pages of the guide whose programs import it. The programs are checked, so they serve as examples
 * for the name.
 */
function guidePages(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const file of globSync('docs/guide/*.md', { cwd: root }).toSorted()) {
    const text = readFileSync(join(root, file), 'utf8');
    const title = /^# (.+)$/m.exec(text)?.[1] ?? file;
    const link = `- [${title}](../../${file.slice('docs/'.length, -'.md'.length)}/)`;
    for (const [, names = ''] of text.matchAll(/^import \{([^}]+)\} from 'offstage/gm))
      for (const name of names.split(',').map((it) => it.trim().replace(/^type /, ''))) {
        const links = found.get(name) ?? [];
        if (!links.includes(link)) found.set(name, [...links, link]);
      }
  }
  return found;
}

const PART = '<internal>';

/** A page for each subpath, with an anchor for each name and member as it is written in a program. */
class SubpathRouter extends BaseRouter {
  override extension = '/';

  protected override getIdealBaseName(target: { readonly name: string }): string {
    return target.name.replaceAll('/', '-');
  }

  protected override getPageKind(target: Reflection): PageKind | undefined {
    return target.parent?.isProject() ? PageKind.Reflection : undefined;
  }

  protected override createAnchor(target: Reflection, page: Reflection): string {
    const names: string[] = [];
    let isPart = false;
    for (let it: Reflection | undefined = target; it && it !== page; it = it.parent) {
      if (!it.kindOf(ReflectionKind.TypeLiteral | ReflectionKind.SomeSignature))
        names.unshift(it.name);
      isPart = it.isDeclaration() && parts.has(it);
    }
    return `${isPart ? 'part.' : ''}${names.join('.')}`;
  }
}

writeFileSync(
  join(declarations, 'tsconfig.json'),
  JSON.stringify({ extends: join(root, 'tsconfig.json'), include: ['**/*.d.ts'], exclude: [] }),
);
const app = await Application.bootstrapWithPlugins({
  plugin: ['typedoc-plugin-missing-exports'],
  entryPoints: entries.map(({ file }) => join(declarations, file)),
  tsconfig: join(declarations, 'tsconfig.json'),
  sortEntryPoints: false,
  sort: ['alphabetical'],
  skipErrorChecking: true,
  excludePrivate: true,
  excludeProtected: true,
  excludeExternals: true,
  readme: 'none',
  disableGit: true,
  sourceLinkTemplate: '{path}',
  typePrintWidth: 90,
  maxTypeConversionDepth: 5,
  // A default is part of the docstring's text, not code.
  jsDocCompatibility: { defaultTag: false },
  logLevel: 'Warn',
});
const project = await app.convert();
if (!project) exit(1);
app.validate(project);

// The reference shows an unexported type as a part of the public name whose signature contains it, and does the same
// for the types in that type's signature. Each such type is on the page of the first subpath that needs it.
const shown = new Set<Reflection>();
const parts = new Set<DeclarationReflection>();
type Needed = ReadonlyMap<Reflection, DeclarationReflection>;
function show(
  it: Reflection,
  page: DeclarationReflection,
  found: Map<Reflection, DeclarationReflection>,
) {
  shown.add(it);
  const types: (SomeType | undefined)[] = [];
  if (it.isDeclaration() || it.isSignature() || it.isParameter()) types.push(it.type);
  if (it.isDeclaration()) types.push(...(it.extendedTypes ?? []));
  const owners = new Set<SomeType>();
  const visitor = makeRecursiveVisitor({
    // `Owner['member']` needs only the member, not its owner.
    indexedAccess: ({ objectType }) => void owners.add(objectType),
    reference: (type) => {
      const to = type.reflection;
      if (owners.has(type) || to?.parent?.name !== PART || shown.has(to) || found.has(to)) return;
      if (to.kindOf(ReflectionKind.Interface | ReflectionKind.TypeAlias)) found.set(to, page);
    },
  });
  for (const type of types) type?.visit(visitor);
  it.traverse((child) => {
    if (child.name !== PART) show(child, page, found);
    return true;
  });
}
let needed: Needed = new Map((project.children ?? []).map((module) => [module, module]));
for (let depth = 0; depth <= 2; depth += 1) {
  const found = new Map<Reflection, DeclarationReflection>();
  for (const [it, page] of needed) {
    show(it, page, found);
    if (it !== page && it.isDeclaration()) {
      parts.add(it);
      it.parent = page;
      page.children?.push(it);
    }
  }
  needed = found;
}
for (const module of project.children ?? []) {
  const internal = module.children?.find(({ name }) => name === PART);
  if (!internal) continue;
  internal.children = internal.children?.filter((it) => !shown.has(it));
  project.removeReflection(internal);
}

const router = new SubpathRouter(app);
app.renderer.router = router;
for (const module of project.children ?? []) {
  const entry = entries.find(
    ({ file }) => file.replace(/(?:\/index)?\.d\.ts$/, '') === module.name,
  );
  module.name = entry?.name ?? module.name;
}
router.buildPages(project);
const theme = new DefaultTheme(app.renderer);
const guides = guidePages();
const undescribed = new Set<string>();

/** Writes the content of one page. The links to its names are relative to that page. */
function pageOf(module: DeclarationReflection): string {
  const event = new PageEvent<Reflection>(module);
  event.project = module.project;
  const context = theme.getRenderContext(event);

  const html = (...elements: readonly JSX.Children[]): string =>
    JSX.renderElement(JSX.createElement(JSX.Fragment, null, ...elements))
      .replaceAll('<br/>', '\n')
      .replaceAll('\u{A0}', ' ')
      .replaceAll('__namedParameters', 'options')
      // Keywords and types without a link are coloured; a type parameter has no link.
      .replaceAll(/<a [^>]*tsd-kind-type-parameter[^>]*>([^<]*)<\/a>/g, '$1')
      .replaceAll(/<a [^>]*?href="([^"]*)"[^>]*>/g, '<a href="$1">')
      .replaceAll(/<span class="(?!tsd-signature-(?:keyword|type)")[^"]*">([^<]*)<\/span>/g, '$1')
      .replaceAll(/ class="tsd-signature-(keyword|type)"/g, ' class="$1"')
      .replaceAll(/<\/?div\b[^>]*>|<wbr\/>/g, '');
  const block = (...elements: readonly JSX.Children[]): string =>
    // The search covers headings and texts, and a signature would only repeat their words.
    `<pre class="signature" data-pagefind-ignore><code>${html(...elements)}</code></pre>\n\n`;
  const inline = (...elements: readonly JSX.Children[]): string =>
    `<code class="signature">${html(...elements).replaceAll(/\s+/g, ' ')}</code>`;
  const linkTo = (target: Reflection, text = target.name): string =>
    `[\`${text}\`](${router.relativeUrl(module, target)})`;

  const textOf = (content: readonly CommentDisplayPart[] = []): string =>
    content
      .map((part) =>
        part.kind === 'inline-tag' && typeof part.target === 'object' && 'kind' in part.target
          ? linkTo(part.target, part.text)
          : part.text,
      )
      .join('')
      .trim()
      .replaceAll(/(?<!\[)`([A-Z_]+)`/g, (whole, code: string) =>
        codes.has(code) ? `[${whole}](../errors/#${code.toLowerCase()})` : whole,
      );
  const flat = (content: readonly CommentDisplayPart[] = []): string =>
    textOf(content).replaceAll(/\s+/g, ' ');
  const anchorOf = (it: Reflection): string => `<span id="${router.getAnchor(it)}"></span>`;
  const list = (title: string, lines: readonly string[]): string => {
    if (lines.length === 0) return '';
    const [first = ''] = lines;
    if (title && lines.length === 1 && first.startsWith('- '))
      return `**${title}**: ${first.slice(2)}\n\n`;
    return `${title && `**${title}**\n\n`}${lines.join('\n')}\n\n`;
  };
  /** The tags that are relevant to a reader. */
  const tagsOf = (comment: Comment | undefined): string => {
    const of = (tag: `@${string}`, prefix = '- '): readonly string[] =>
      (comment?.getTags(tag) ?? []).map(({ content }) =>
        prefix ? `${prefix}${flat(content)}` : textOf(content),
      );
    return [
      list('Returns', of('@returns')),
      list('Default', of('@defaultValue')),
      list('Throws', of('@throws')),
      list('Example', of('@example', '')),
    ].join('');
  };

  const name = (it: DeclarationReflection): string => `${it.name}${it.flags.isOptional ? '?' : ''}`;
  /** The members of an anonymous object, such as an option that groups other options. */
  const nested = (type: SomeType | undefined, path: string): readonly string[] => {
    const all = (types: readonly SomeType[]): readonly string[] =>
      types.flatMap((part) => nested(part, path));
    return (
      type?.visit<readonly string[]>({
        reflection: ({ declaration }) =>
          (declaration.children ?? []).flatMap((child) => {
            const says = commentOf(child);
            const full = `${path}.${child.name}`;
            const fallback = says?.getTag('@defaultValue')?.content;
            const text = `${flat(says?.summary)}${fallback ? ` Default: ${flat(fallback)}.` : ''}`;
            return [...(says ? [`- \`${full}\`: ${text}`] : []), ...nested(child.type, full)];
          }),
        array: ({ elementType }) => nested(elementType, `${path}[]`),
        intersection: ({ types }) => all(types),
        optional: ({ elementType }) => nested(elementType, path),
        union: ({ types: cases, elementSummaries }) => [
          ...cases.flatMap((part, index) =>
            elementSummaries?.[index]?.length
              ? `- ${inline(context.type(part))}: ${flat(elementSummaries[index])}`
              : [],
          ),
          ...all(cases),
        ],
      }) ?? []
    );
  };
  const saidOf = (it: DeclarationReflection): string => {
    const says = commentOf(it);
    return `${textOf(says?.summary)}\n\n${tagsOf(says)}${list('', nested(it.type, it.name))}`;
  };
  const memberOf = (owner: DeclarationReflection, it: DeclarationReflection): string => {
    const isNew = it.kindOf(ReflectionKind.Constructor);
    if (!isNew && !commentOf(it)) undescribed.add(`${sourceOf(it)} ${owner.name}.${it.name}`);
    const title = isNew ? `new ${owner.name}` : `${owner.name}.${it.name}`;
    return `### ${anchorOf(it)}${title}\n\n${signed(it)}`;
  };
  /** The signature and the docstring of a function, method, accessor or property. */
  const signed = (it: DeclarationReflection): string => {
    const signatures = it.signatures ?? (it.getSignature ? [it.getSignature] : []);
    if (signatures.length === 0)
      return `${block(name(it), ': ', context.type(it.type))}${saidOf(it)}`;
    return signatures
      .map((signature) => {
        const says = signature.comment ?? it.comment;
        const lines = (signature.parameters ?? []).flatMap((parameter) => {
          const path = parameter.name.replace('__namedParameters', 'options');
          const text = flat(parameter.comment?.summary);
          return [...(text ? [`- \`${path}\`: ${text}`] : []), ...nested(parameter.type, path)];
        });
        return `${block(context.memberSignatureTitle(signature))}${textOf(says?.summary)}\n\n${list('Arguments', lines)}${tagsOf(says)}`;
      })
      .join('');
  };

  const sectionOf = (it: DeclarationReflection): string => {
    const isPart = parts.has(it);
    const kind = isPart ? 'part of the names above, not exported' : kindOf(it);
    const head = `## ${anchorOf(it)}${it.name}\n\n<p class="kind">${kind} · <code>${sourceOf(it)}</code></p>\n\n`;
    const guide = list('In the guide', isPart ? [] : (guides.get(it.name) ?? []));
    if (it.signatures) return `${head}${signed(it)}${guide}`;
    const names = (it.typeParameters ?? []).map((parameter) => parameter.name).join(', ');
    const title = `${it.name}${names && `<${names}>`}`;
    const parents = (it.extendedTypes ?? []).flatMap((type) =>
      'reflection' in type && type.reflection ? [' extends ', context.type(type)] : [],
    );
    const shape = it.kindOf(ReflectionKind.Variable)
      ? ['const ', title, ': ', context.type(it.type)]
      : it.type
        ? ['type ', title, ' = ', context.type(it.type)]
        : [context.reflectionPreview(it) ?? [kindOf(it), ' ', title, ...parents]];
    const members = it.children ?? [];
    // A member that comes from a type without a page counts as a member of this type.
    const parentOf = (member: DeclarationReflection): Reflection | undefined =>
      member.kindOf(ReflectionKind.Constructor) ? undefined : member.inheritedFrom?.reflection;
    const inherited = members.flatMap((member) => {
      const target = parentOf(member);
      if (!target) return [];
      const [first = ''] = flat(commentOf(member)?.summary).split(/(?<=[.!?])\s/);
      return `- ${anchorOf(member)}${linkTo(target, member.name)}: ${first}`;
    });
    const own = members
      .filter((member) => !parentOf(member))
      .map((member) => memberOf(it, member))
      .join('');
    return `${head}${block(...shape)}${saidOf(it)}${guide}${list('Inherited', inherited)}${own}`;
  };

  const names = module.children ?? [];
  const elsewhere = names.flatMap((it) =>
    it.isReference() ? `- ${linkTo(it.getTargetReflectionDeep(), it.name)}` : [],
  );
  // A type that two entry points reach separately appears twice.
  const here = new Map(
    names.flatMap((it) => (it.isReference() ? [] : [[router.getAnchor(it), it]])),
  );
  return [
    ...(elsewhere.length === 0 ? [] : [`${elsewhere.join('\n')}\n\n`]),
    ...[...here.values()]
      .toSorted(
        (a, b) => Number(parts.has(a)) - Number(parts.has(b)) || a.name.localeCompare(b.name),
      )
      .map(sectionOf),
  ].join('');
}

function commentOf(it: DeclarationReflection): Comment | undefined {
  const signature = it.signatures?.[0] ?? it.getSignature;
  const own = it.type?.type === 'reflection' ? it.type.declaration.signatures?.[0] : undefined;
  const found = it.comment ?? signature?.comment ?? own?.comment;
  return found?.hasVisibleComponent() ? found : undefined;
}

function sourceOf(it: DeclarationReflection): string {
  return `src/${it.sources?.[0]?.fileName.replace(/^.*\/\.types\//, '').replace('.d.ts', '.ts')}`;
}

function kindOf(it: DeclarationReflection): string {
  return ReflectionKind.singularString(it.kind).toLowerCase().replace('variable', 'constant');
}

const folder = join(import.meta.dirname, 'src/content/docs/reference');
mkdirSync(folder, { recursive: true });
for (const [order, module] of (project.children ?? []).entries()) {
  const head = `---\ntitle: ${module.name}\nsidebar:\n  order: ${100 + order}\ntableOfContents:\n  maxHeadingLevel: 2\n---\n\n`;
  writeFileSync(join(folder, `${module.name.replaceAll('/', '-')}.md`), head + pageOf(module));
}
stdout.write(
  `${undescribed.size} members of the reference have no docstring, at most ${UNDESCRIBED} may.\n`,
);
if (undescribed.size > UNDESCRIBED) for (const line of undescribed) stdout.write(`${line}\n`);
if (undescribed.size > UNDESCRIBED || app.logger.hasWarnings()) exit(1);
