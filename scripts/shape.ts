// Measures the shape of src from its code: `npm run shape` prints it, and `npm run check` enforces the limits. A limit
// is the value from the day on which it was set, or lower. Limits only go down, towards their goals.

import { readFileSync, globSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { argv, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const texts = new Map(
  globSync('src/**/*.ts', { cwd: root }).map((file) => [
    normalize(file),
    readFileSync(join(root, file), 'utf8'),
  ]),
);

interface Import {
  readonly from: string;
  readonly to: string;
  readonly isType: boolean;
}

const IMPORT = /^(?:import|export)( type)?\s*([^;]*?)from '(\.[^']+)'/gms;

function* importsOf(file: string, text: string): Generator<Import> {
  for (const [, type, names = '', specifier = ''] of text.matchAll(IMPORT)) {
    const to = normalize(join(dirname(file), specifier));
    if (!texts.has(to)) continue;
    const listed = names.replaceAll(/[{}]/g, '').split(',');
    const onlyTypes = names.startsWith('{') && listed.every((name) => /^\s*(?:type |$)/.test(name));
    yield { from: file, to, isType: type !== undefined || onlyTypes };
  }
}

const imports = [...texts].flatMap(([file, text]) => [...importsOf(file, text)]);

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

function graphOf(nodes: Iterable<string>, edges: Iterable<readonly [string, string]>): Graph {
  const graph = new Map([...nodes].map((node) => [node, new Set<string>()] as const));
  for (const [from, to] of edges) if (from !== to) graph.get(from)?.add(to);
  return graph;
}

/** The groups of nodes that can reach each other (Tarjan). */
function cyclesIn(graph: Graph): readonly (readonly string[])[] {
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];
  const visit = (node: string): void => {
    const own = index.size;
    index.set(node, own);
    low.set(node, own);
    stack.push(node);
    for (const next of graph.get(node) ?? []) {
      if (!index.has(next)) visit(next);
      if (stack.includes(next)) low.set(node, Math.min(low.get(node) ?? own, low.get(next) ?? own));
    }
    if (low.get(node) !== own) return;
    const group = stack.splice(stack.indexOf(node));
    if (group.length > 1) cycles.push(group);
  };
  for (const node of graph.keys()) if (!index.has(node)) visit(node);
  return cycles;
}

const folderOf = (file: string): string => dirname(file).replace(/^src\/?/, '') || 'src';
const files = [...texts.keys()];
const folders = [...new Set(files.map(folderOf))];
const fileCycles = cyclesIn(
  graphOf(
    files,
    imports.map(({ from, to }) => [from, to]),
  ),
);
const folderCycles = cyclesIn(
  graphOf(
    folders,
    imports.map(({ from, to }) => [folderOf(from), folderOf(to)]),
  ),
);

const importers = new Map<string, Set<string>>();
for (const { from, to } of imports) importers.set(to, (importers.get(to) ?? new Set()).add(from));
const singles = files.filter((file) => importers.get(file)?.size === 1).length;

const all = [...texts.values()].join('\n');
const count = (pattern: RegExp, text = all): number => [...text.matchAll(pattern)].length;

/**
 * The code without comments, imports and exports. The casts in `types: { context: {} as … }` are XState's own way to
 * declare a type.
 */
const statements = all
  .replaceAll(/\/\*[^]*?\*\/|\/\/[^\n]*/g, '')
  .replaceAll(/^(?:import|export)(?: type)? [*{][^;]*;/gm, '');

const made = new Map<string, number>();
for (const [, name = ''] of all.matchAll(/\bnew (\w+)[<(]/g))
  made.set(name, (made.get(name) ?? 0) + 1);
const classes = [...all.matchAll(/^(?:export )?(?:abstract )?class (\w+)/gm)].map(
  ([, name = '']) => name,
);
const madeOnce = classes.filter((name) => made.get(name) === 1).length;

const index = texts.get(normalize('src/index.ts')) ?? '';
const rootNames = [
  ...index.matchAll(/export\s+(?:type\s+)?\{([^}]*)\}/gs),
  ...index.matchAll(/^export (?:class|type) (\w+)/gm),
].flatMap(([, names = '']) =>
  names
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== ''),
);

/** Returns the comments of a file, each as one line of prose. */
function commentsOf(text: string): readonly string[] {
  const blocks = [...text.matchAll(/\/\*\*?(.*?)\*\//gs)].map(([, block = '']) =>
    block.replaceAll(/^\s*\*+ ?/gm, '').replaceAll(/\s+/g, ' '),
  );
  const lines = text.split('\n').map((line) => line.trim());
  const runs = lines
    .map((line) => (line.startsWith('//') ? line.slice(2).trim() : '\0'))
    .join(' ')
    .split('\0')
    .map((run) => run.trim())
    .filter((run) => run !== '');
  return [...blocks, ...runs];
}

/** Returns the sentences that have at least three words and are not questions. */
const sentencesOf = (text: string): readonly string[] =>
  commentsOf(text)
    .flatMap((comment) => comment.replaceAll(/@\w+.*/g, '').split(/(?<=[.?!:])\s+/))
    .map((sentence) => sentence.trim())
    .filter((it) => it.split(/\s+/).length >= 3 && /^[A-Z`]/.test(it) && !it.endsWith('?'));

/** Openings that make a sentence unclear because they hide its subject. */
const RIDDLE =
  /^(?:What|Whoever|Who|Whatever|Whom|Those who|Those that|One that|One who|Nobody|Somebody)\b/;
const sentences = [...texts.values()].flatMap(sentencesOf);
const riddles = sentences.filter((sentence) => RIDDLE.test(sentence)).length;

/** Words from the earlier vocabulary; the current ones are continues, idle, again, no client, even if. */
const EARLIER =
  /\b(?:go(?:es)? on|at rest|anew|nobody|somebody|anybody|whoever|also (?:if|after|when)|as it is|says so|comes about|set aside|stranger|twin)\b/i;
const dated = sentences.filter((sentence) => EARLIER.test(sentence)).length;

/** Every file that may define or cite an invariant. The journals of `test/corpus` are not prose. */
const cited = new Map(
  globSync(
    ['{src,test,examples,bench,scripts}/**/*.ts', 'docs/*.md', '*.md', '{bench,examples}/**/*.md'],
    { cwd: root, exclude: (name) => name === 'node_modules' },
  ).map((file) => [normalize(file), readFileSync(join(root, file), 'utf8')] as const),
);

/** The id of an invariant: the name of its file and a number, such as `OUTBOX-3`. */
const ID = String.raw`(?<![\w./-])[A-Z][A-Z0-9]*(?:-[A-Z][A-Z0-9]*)*-\d+(?![\w-])`;
/** Names of standards that look like ids. */
const STANDARD = /^(?:UTF|BCP|FNV|ISO|RFC|EPL|GPL)-/;
/** A line in a header that defines an invariant. */
const DEFINITION = new RegExp(String.raw`^//\s*(?:Invariants?:?\s+)?(${ID})[.:]?\s+\S`);
const headerOf = (text: string): readonly string[] =>
  text.slice(0, text.search(/^(?!\/\/|$)/m)).split('\n');

const definedIn = new Map<string, string[]>();
for (const [file, text] of cited)
  for (const line of file.endsWith('.ts') && !file.endsWith('.test.ts') ? headerOf(text) : []) {
    const id = DEFINITION.exec(line)?.[1];
    if (id !== undefined) definedIn.set(id, [...(definedIn.get(id) ?? []), file]);
  }
const ambiguous = [...definedIn].filter(([, places]) => new Set(places).size > 1);
const families = new Set([...definedIn.keys()].map((id) => id.replace(/-\d+$/, '')));

/**
 * A number without a file name, in a place where only the id of an invariant can stand: before the colon that opens a
 * title, at the start of a comment, or alone in parentheses. An id in square brackets belongs to the inventory
 * (docs/coming-from.md), and P1 to P10 are the promises in docs/guarantees.md.
 */
const SHORT = String.raw`(?:[A-Z]{1,3}\d{1,2}(?:,? (?:and |to )?)?)+`;
const NAMELESS = [
  new RegExp(String.raw`['"\`](?:\[[A-Z\d ]+\] )?(${SHORT}):\s`, 'g'),
  new RegExp(String.raw`(?://|/\*\*|^\s*\*)\s+(${SHORT})[:.]\s`, 'gm'),
  new RegExp(String.raw`\((${SHORT})\)`, 'g'),
];
const isPromise = (id: string): boolean => /^P(?:[1-9]|10)$/.test(id);
/** The names of a ranking method and of an audio format are not ids. */
const isNameless = (list: string): boolean =>
  (list.match(/[A-Z]+\d+/g) ?? []).some((id) => !isPromise(id) && !/^(?:BM25|PCM16)$/.test(id));

function* citationsOf(file: string, text: string): Generator<string> {
  const isDocument = file.endsWith('.md');
  const prose = isDocument ? text : commentsOf(text).join('\n');
  for (const [id] of prose.matchAll(new RegExp(ID, 'g'))) yield id;
  if (isDocument) return;
  for (const [, title = ''] of text.matchAll(/(['"`][^'"`\n]*)/g))
    for (const [id] of title.matchAll(new RegExp(ID, 'g')))
      if (families.has(id.replace(/-\d+$/, '')) || title.includes(`${id}: `)) yield id;
  for (const pattern of NAMELESS)
    for (const [, list = ''] of text.matchAll(pattern)) if (isNameless(list)) yield list.trim();
}

const undefinedIds = [...cited].flatMap(([file, text]) =>
  [...new Set(citationsOf(file, text))]
    .filter((id) => !definedIn.has(id) && !STANDARD.test(id))
    .map((id) => `${file}: ${id}`),
);

const codeLines = (text: string): number =>
  text
    .replaceAll(/\/\*.*?\*\//gs, '')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.trim().startsWith('//')).length;
const linesOf = (some: Iterable<string>): number =>
  [...some].reduce((sum, file) => sum + codeLines(texts.get(file) ?? ''), 0);
const core = files.filter((file) => !/^src\/(?:adapters|testing|cli)\//.test(file));

/** The files in src that `import 'offstage'` loads. */
const loaded = new Set([normalize('src/index.ts')]);
for (const file of loaded)
  for (const { from, to, isType } of imports) if (from === file && !isType) loaded.add(to);

/** The number of members in the widest internal port. */
const ports = [...all.matchAll(/\binterface (\w+(?:Ports|Driver)) [^{]*\{\n(.*?)\n\}/gs)].map(
  ([, name = '', body = '']) => ({
    name,
    members: [...body.matchAll(/^  (?:readonly )?\w+[?(:<]/gm)].length,
  }),
);
const widest = ports.toSorted((one, other) => other.members - one.members)[0];
const longest = files.toSorted(
  (a, b) => (texts.get(b)?.split('\n').length ?? 0) - (texts.get(a)?.split('\n').length ?? 0),
)[0];

interface Row {
  readonly what: string;
  readonly value: number;
  /** `npm run check` fails above this value. */
  readonly limit: number;
  /** The value to aim for. @defaultValue the limit */
  readonly goal?: number;
  readonly which?: readonly string[];
}

const percent = (part: number, whole: number): number => Math.round((1000 * part) / whole) / 10;

const rows: readonly Row[] = [
  {
    what: 'cycles of folders',
    value: folderCycles.length,
    limit: 0,
    which: folderCycles.map((cycle) => cycle.join(' ')),
  },
  {
    what: 'cycles of files, with types',
    value: fileCycles.length,
    limit: 0,
    which: fileCycles.map((cycle) => cycle.join(' ')),
  },
  {
    what: 'casts (`as never`, `as unknown as`, `as any`)',
    value: count(/\bas never\b|\bas unknown as\b|\bas any\b/g),
    limit: 16,
  },
  { what: 'names exported by the root', value: rootNames.length, limit: 65 },
  {
    what: 'public names',
    value: readFileSync(join(root, 'docs/api.md'), 'utf8').match(/^\| `/gm)?.length ?? 0,
    limit: 661,
  },
  {
    what: 'ids of invariants that stand for several',
    value: ambiguous.length,
    limit: 0,
    which: ambiguous.map(([id, places]) => `${id}: ${places.join(' ')}`),
  },
  {
    what: 'ids of invariants that are cited, and defined nowhere',
    value: undefinedIds.length,
    limit: 0,
    which: undefinedIds,
  },
  {
    what: 'sentences of comments that open with a riddle, %',
    value: percent(riddles, sentences.length),
    limit: 0.1,
  },
  {
    what: 'sentences of comments in earlier words, %',
    value: percent(dated, sentences.length),
    limit: 0.3,
  },
  {
    what: `lines of the longest file (${longest ?? ''})`,
    value: texts.get(longest ?? '')?.split('\n').length ?? 0,
    limit: 900,
  },
  { what: 'files', value: files.length, limit: 686 },
  {
    what: 'files with one importer, %',
    value: percent(singles, files.length),
    limit: 25.6,
    goal: 18,
  },
  { what: 'classes made at one place', value: madeOnce, limit: 168, goal: 90 },
  { what: 'interfaces `…Ports`', value: count(/\binterface \w+Ports\b/g), limit: 14 },
  {
    what: `members of the widest port (${widest?.name ?? ''})`,
    value: widest?.members ?? 0,
    limit: 12,
    goal: 10,
  },
  {
    what: 'casts (`as`)',
    value: count(/(?<!\{\}) as (?!const\b)[A-Z{[(]/g, statements),
    limit: 458,
    goal: 250,
  },
  { what: 'lines of code', value: linesOf(texts.keys()), limit: 119268, goal: 85_000 },
  {
    what: 'lines of code without adapters, testing and cli',
    value: linesOf(core),
    limit: 71749,
  },
  {
    what: "files that `import 'offstage'` loads",
    value: loaded.size,
    limit: 204,
    goal: 110,
  },
  {
    what: "lines of code that `import 'offstage'` loads",
    value: linesOf(loaded),
    limit: 42396,
    goal: 24_000,
  },
];

const isCheck = argv.includes('--check');
let failed = false;
for (const { what, value, limit, goal, which = [] } of rows) {
  const isOver = value > limit;
  failed ||= isOver;
  if (isCheck && !isOver) continue;
  stdout.write(
    `${String(value).padStart(8)}  ${what} (limit ${limit}${goal === undefined ? '' : `, goal ${goal}`})\n`,
  );
  if (isOver) for (const one of which.slice(0, 20)) stdout.write(`          ${one}\n`);
}
if (isCheck && failed) {
  stdout.write('The shape of src is above a limit of scripts/shape.ts.\n');
  process.exitCode = 1;
}
