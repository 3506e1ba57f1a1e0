// Lists the values that a file in src/ reaches through its imports: packages, built-in Node.js modules, and globals
// that only Node.js has. Types do not count: `verbatimModuleSyntax` makes them explicit, and they do not exist at run
// time.

import { dirname, join } from 'node:path/posix';

/** A reached value, and the import path to it, from the entry to the file that uses it. */
export interface Reached {
  /** A package or module, such as `zod` or `node:crypto`, or a global, such as `Buffer`. */
  readonly name: string;
  readonly way: readonly string[];
}

const STATIC = /^(?:import|export)\b(?!\s+type\b)([^;'"]*?)\bfrom\s*'([^']+)'/gms;
const BARE = /^import\s*'([^']+)'/gm;
const DYNAMIC = /\bimport\(\s*'([^']+)'/g;
/** An exported declaration starts with one of these words and imports nothing. */
const DECLARATION =
  /^\s*(?:abstract|async|class|const|declare|default|enum|function|interface|let)\b/;
/** A Node.js global that is not a property, a key or part of a text. */
const NODE_GLOBAL = /(?<![\w.'"`$])(Buffer|require|__dirname|__filename|setImmediate)\b(?!['":`])/g;

/** Returns the names that the file imports as values. */
function valueImportsOf(code: string): readonly string[] {
  const named = [...code.matchAll(STATIC)].flatMap(([, names = '', from = '']) => {
    if (DECLARATION.test(names)) return [];
    const listed = names.trim().startsWith('{') ? names.replaceAll(/[{}]/g, '').split(',') : null;
    return listed?.every((name) => /^\s*(?:type\s|$)/.test(name)) ? [] : [from];
  });
  const others = [...code.matchAll(BARE), ...code.matchAll(DYNAMIC)];
  return [...named, ...others.map(([, from = '']) => from)];
}

/**
 * Returns everything outside src/ that these entries reach, with the shortest import path to each file that uses it.
 * @param read returns the text of a file, given its path from the root of the repository.
 */
export function reachedFrom(
  entries: readonly string[],
  read: (file: string) => string,
): readonly Reached[] {
  const cameFrom = new Map<string, string | null>(entries.map((entry) => [entry, null]));
  const reached: Reached[] = [];
  const wayTo = (file: string): readonly string[] => {
    const before = cameFrom.get(file);
    return before ? [...wayTo(before), file] : [file];
  };
  // A map keeps insertion order, and its iteration includes entries that are added meanwhile.
  for (const file of cameFrom.keys()) {
    const code = read(file)
      .replaceAll(/\/\*.*?\*\//gs, '')
      .replaceAll(/(?<!['":])\/\/.*$/gm, '');
    const outside = new Set([...code.matchAll(NODE_GLOBAL)].map(([, name = '']) => name));
    for (const from of valueImportsOf(code)) {
      const target = join(dirname(file), from);
      if (!from.startsWith('.')) outside.add(from);
      else if (!cameFrom.has(target)) cameFrom.set(target, file);
    }
    for (const name of outside) reached.push({ name, way: wayTo(file) });
  }
  return reached;
}
