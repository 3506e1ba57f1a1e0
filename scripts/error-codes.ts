// Compares the codes of errors and failures in `src` with docs/errors.md, which explains the cause and the fix for
// each. `npm run check` fails if the file lacks a code or lists one that no source contains.
//
// A code is the literal first argument of an error class, or the literal value of a `code` property. Codes from another
// system (a provider, a database) are variables and have no row.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stdout } from 'node:process';
import { fileURLToPath } from 'node:url';
import { API, type Checker } from 'typescript/unstable/sync';
import type { Node, SourceFile } from 'typescript/unstable/ast';
import {
  isIdentifier,
  isNewExpression,
  isPropertyAssignment,
  isShorthandPropertyAssignment,
} from 'typescript/unstable/ast/is';

const root = fileURLToPath(new URL('..', import.meta.url));
const CODE = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/;
const ERRORS = /Error$/;
// The codes of a fake server and of a simulation never reach an app.
const IGNORED = /\/src\/testing\/(?:voice-server|simulate)\//;

function literalsOf(checker: Checker, node: Node): readonly string[] {
  const type = checker.getTypeAtLocation(node);
  const types = type?.isUnionType() ? type.getTypes() : [type];
  return types.flatMap((one) =>
    one?.isStringLiteralType() && CODE.test(one.value) ? [one.value] : [],
  );
}

function codesIn(checker: Checker, file: SourceFile): Set<string> {
  const codes = new Set<string>();
  const take = (node: Node | undefined): void => {
    for (const code of node ? literalsOf(checker, node) : []) codes.add(code);
  };
  const visit = (node: Node): undefined => {
    if (isNewExpression(node)) {
      if (isIdentifier(node.expression) && ERRORS.test(node.expression.text))
        take(node.arguments?.[0]);
    } else if (isPropertyAssignment(node) || isShorthandPropertyAssignment(node)) {
      if (isIdentifier(node.name) && node.name.text === 'code')
        take(isPropertyAssignment(node) ? node.initializer : node.name);
    }
    node.forEachChild(visit);
  };
  file.forEachChild(visit);
  return codes;
}

const api = new API({ cwd: root });
const [project] = api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] }).getProjects();
if (!project) throw new Error('tsconfig.json was not opened');
const { program, checker } = project;
const places = new Map<string, string[]>();
const texts: string[] = [];
for (const name of program.getSourceFileNames()) {
  if (!name.startsWith(join(root, 'src')) || IGNORED.test(name)) continue;
  const file = program.getSourceFile(name);
  texts.push(file?.text ?? '');
  for (const code of file ? codesIn(checker, file) : [])
    places.set(code, [...(places.get(code) ?? []), name.slice(root.length)]);
}
api.close();

const told = new Set(
  [...readFileSync(join(root, 'docs/errors.md'), 'utf8').matchAll(/^\| `([A-Z0-9_]+)`/gm)].map(
    ([, code]) => code ?? '',
  ),
);
const problems = [
  ...[...places]
    .filter(([code]) => !told.has(code))
    .map(([code, files]) => `${code} (${files.join(', ')}) has no row in docs/errors.md`),
  ...[...told]
    .filter((code) => !texts.some((text) => text.includes(`'${code}'`)))
    .map((code) => `docs/errors.md: ${code} is in no source any more`),
].toSorted();
for (const problem of problems) stdout.write(`${problem}\n`);
if (problems.length > 0) process.exitCode = 1;
