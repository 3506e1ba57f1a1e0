// Rule: a file in src/ imports only what its row in import-directions.ts allows.

import { dirname, resolve, sep } from 'node:path';
import { layers, type Layer } from './import-directions.ts';
import { stringValue, type Rule, type SyntaxNode } from './rule.ts';

/**
 * Returns the file or folder of the row that contains the file. `files` may end in `/*`, which gives each adapter its
 * own row.
 */
function rootOf(layer: Layer, file: string): string | undefined {
  if (!layer.files.endsWith('/*')) return within(file, [layer.files]) ? layer.files : undefined;
  const folder = layer.files.slice(0, -1);
  if (!file.startsWith(folder)) return undefined;
  return folder + file.slice(folder.length).split('/', 1)[0];
}

function within(file: string, roots: readonly string[]): boolean {
  return roots.some((root) => file === root || file.startsWith(`${root}/`));
}

function packageAllowed(specifier: string, packages: readonly string[]): boolean {
  return specifier.startsWith('node:') ? packages.includes('node:') : within(specifier, packages);
}

function rowOf(file: string): Layer | undefined {
  return layers.find((row) => rootOf(row, file) !== undefined);
}

/** Returns the problem with importing `specifier` in `file` (relative to src/); undefined if it is allowed. */
export function importProblem(file: string, specifier: string): string | undefined {
  const layer = rowOf(file);
  const root = layer && rootOf(layer, file);
  if (!layer || root === undefined) {
    return `src/${file} has no row in scripts/lint/import-directions.ts: add one`;
  }
  if (!specifier.startsWith('.')) {
    if (packageAllowed(specifier, layer.packages)) return undefined;
    return `src/${root} may not import the package '${specifier}', only: ${list(layer.packages)}`;
  }
  const target = resolve('/', dirname(file), specifier).slice(1);
  // A nested folder may have its own row, which then applies to its files.
  const isOwn = within(target, [root]) && rowOf(target) === layer;
  if (isOwn || within(target, layer.sources)) return undefined;
  return `src/${root} may not import src/${target}, only itself and: ${list(layer.sources)}`;
}

function list(names: readonly string[]): string {
  return names.length === 0 ? 'nothing' : names.join(', ');
}

export const importDirection: Rule = {
  create(context) {
    const path = context.filename.split(sep).join('/');
    const start = path.lastIndexOf('/src/');
    if (start < 0) return {};
    const file = path.slice(start + '/src/'.length);
    const check = (node: SyntaxNode): void => {
      const specifier = stringValue(node['source'] as SyntaxNode | null);
      const message = specifier === undefined ? undefined : importProblem(file, specifier);
      if (message !== undefined) context.report({ node, message });
    };
    return {
      ImportDeclaration: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      ImportExpression: check,
      TSImportType: check,
    };
  },
};
