// Compiles user programs against the declarations of the build, with the strictest options, in both resolution modes,
// with the newest and the oldest TypeScript. The programs are an import of each entry, every example, and a library
// that exports its values (scripts/consumer-library.ts). Errors in the declarations of dependencies are ignored;
// docs/guide/deploying.md lists them. Then checks which packages the declarations of each entry import, because an app
// must compile without the optional peer dependencies of other entries. Needs the build.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process, { stdout } from 'node:process';
import { entries, manifest, reachedFrom, root } from './declarations.ts';

const folder = join(root, '.consumers');

/**
 * The packages that the declarations of an entry may import in addition to those that every app has. `node`: types of
 * Node.js.
 */
const OWN: Readonly<Record<string, readonly string[]>> = {
  './react': ['react'],
  './serve': ['node'],
  './inspector': ['node'],
  './openai-realtime': ['node'],
  './openai-live': ['node'],
  './gemini-live': ['node'],
  './testing/voice-server': ['node'],
  './otel': ['@opentelemetry/api'],
  './sqlite-journal': ['node'],
  './postgres-journal': ['pg'],
  './acp': ['node', '@agentclientprotocol/sdk'],
  './mcp': ['node', '@modelcontextprotocol/sdk'],
  './webhook': ['node'],
  './twilio': ['node'],
};

const errors: string[] = [];

const strictest = {
  target: 'es2022',
  lib: ['es2022'],
  types: ['node'],
  strict: true,
  skipLibCheck: false,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  declaration: true,
  noEmit: true,
};
// Examples may use newer libraries than the declarations, and import each other with file extensions.
const ofExamples = { lib: ['es2024', 'esnext.disposable'], allowImportingTsExtensions: true };

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
// The programs import a copy of the package. Inside the package, the compiler would name a type by its file, which
// users cannot import.
writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
for (const part of ['package.json', 'dist'])
  cpSync(join(root, part), join(folder, 'node_modules/offstage', part), { recursive: true });
cpSync(join(root, 'scripts/consumer-library.ts'), join(folder, 'consumer-library.ts'));
for (const [entry] of entries) {
  const name = entry.replaceAll(/\W+/g, '-');
  const text = `export * as it from 'offstage${entry.slice(1)}';\n`;
  writeFileSync(join(folder, `entry${name}.ts`), text);
}

/**
 * The oldest compiler is installed in `test/frameworks`, because its executable has the same name as the newest
 * compiler's.
 */
const compilers = {
  newest: join(root, 'node_modules/typescript/bin/tsc'),
  oldest: join(root, 'test/frameworks/node_modules/typescript-oldest/bin/tsc'),
};

function compile(
  what: string,
  compiler: keyof typeof compilers,
  compilerOptions: object,
  include: readonly string[],
): void {
  const config = join(folder, 'tsconfig.json');
  writeFileSync(config, JSON.stringify({ compilerOptions, include }));
  const args = [compilers[compiler], '-p', config, '--pretty', 'false'];
  const { status, stdout: said } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    cwd: root,
    maxBuffer: 2 ** 27,
  });
  const all = said.split('\n').filter((line) => /error TS\d/.test(line));
  const own = all.filter((line) => !/^(?:\.\.\/)*node_modules\//.test(line));
  errors.push(...own.map((line) => `${what}: ${line}`));
  if (status === null) errors.push(`${what}: the compiler did not end`);
  const others = all.length - own.length;
  stdout.write(`${own.length === 0 ? '✓' : '✗'} ${what} (${others} errors in dependencies)\n`);
}

const programs = ['*.ts'];
const nodenext = { ...strictest, module: 'nodenext' };
const bundler = { ...strictest, module: 'preserve', moduleResolution: 'bundler' };
const withExamples = [...programs, '../examples/*.ts'];
compile('nodenext', 'newest', { ...nodenext, ...ofExamples }, withExamples);
compile('bundler', 'newest', { ...bundler, ...ofExamples }, withExamples);
if (existsSync(compilers.oldest)) compile('oldest TypeScript', 'oldest', nodenext, programs);
else stdout.write('- oldest TypeScript: `npm run test:frameworks` installs it\n');
rmSync(folder, { recursive: true });

/** Returns the packages that the declarations of an entry import. */
function importsOf(types: string): Set<string> {
  const named = [...reachedFrom(types).values()].flat();
  const packageOf = (name: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name;
  return new Set(named.map((name) => (name.startsWith('node:') ? 'node' : packageOf(name))));
}

const required = new Set([
  ...Object.keys(manifest.dependencies),
  ...Object.keys(manifest.peerDependencies).filter(
    (name) => !Object.hasOwn(manifest.peerDependenciesMeta, name),
  ),
]);
for (const [entry, types] of entries) {
  const own = OWN[entry] ?? [];
  const optional = [...importsOf(types)].filter((name) => !required.has(name));
  for (const name of optional)
    if (!own.includes(name))
      errors.push(`${entry}: its types import ${name}, which it has no need of`);
  for (const name of own)
    if (!optional.includes(name)) errors.push(`${entry}: its types do not import ${name} any more`);
}

for (const error of errors) stdout.write(`${error}\n`);
if (errors.length > 0) process.exitCode = 1;
