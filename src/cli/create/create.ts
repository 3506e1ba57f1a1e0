// `offstage create`: creates a project from a template. The template files are in the package's folder `templates`. The
// repository compiles and runs these files. A project receives the package versions with which they are tested.

import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { propertiesOf } from '../../values/json.ts';
import { messageOf } from '../../values/errors.ts';
import { argumentsOf, commandOf, WrongCall, type Command } from '../command/command.ts';

interface Template {
  readonly summary: string;
  /** The template's own files. The first file is the program. */
  readonly files: readonly [string, ...string[]];
  /** The packages that this template needs. */
  readonly packages: readonly string[];
  /** Whether the template needs the packages of the built-in voice. */
  readonly speaks?: true;
  /** Whether the project runs in workerd and is deployed with wrangler. Otherwise the program runs in Node.js. */
  readonly deploys?: true;
}

const TEMPLATES: Readonly<Record<string, Template>> = {
  web: {
    summary: 'a chat in a page, with buttons for the questions of subagents',
    files: ['web.ts', 'web/index.html', 'web/page.ts', 'web/chat.ts', 'web/style.css'],
    packages: ['ws'],
  },
  terminal: { summary: 'a chat in the terminal', files: ['terminal.ts'], packages: [] },
  voice: {
    summary: 'a page that speaks and listens; without a key by a voice on this machine',
    files: ['voice.ts', 'voice/index.html', 'voice/page.ts', 'voice/style.css'],
    packages: ['ws'],
    speaks: true,
  },
  telephone: {
    summary: 'a telephone number at Twilio, with a rehearsal in the terminal',
    files: ['telephone.ts', 'rehearsal.ts'],
    packages: ['ws'],
    speaks: true,
  },
  cloudflare: {
    summary: 'a Worker of Cloudflare: each chat is a Durable Object, with a page',
    files: [
      'cloudflare.ts',
      'wrangler.jsonc',
      'cloudflare/page.ts',
      'web/index.html',
      'web/chat.ts',
      'web/style.css',
    ],
    packages: [],
    deploys: true,
  },
};
const DEFAULT_TEMPLATE = 'web';
const FILES = ['agents.ts', 'model.ts', 'script.ts', 'tsconfig.json'];
const PACKAGES = ['@ai-sdk/openai', 'ai', 'zod'];
const TOOLS = ['@types/node', 'typescript'];
/** The versions are from `test/cloudflare`, where the project is tested. A Worker's page must be bundled. */
const WORKER_TOOLS = { esbuild: '^0.28.2', wrangler: '^4.116.0' };
/** The versions of Node.js that run TypeScript without flags. */
const NODE_RANGE = '>=22.18';

const names = Object.keys(TEMPLATES);
const width = Math.max(...names.map((name) => name.length));
const list = Object.entries(TEMPLATES)
  .map(([name, { summary }]) => `  ${name.padEnd(width)}   ${summary}`)
  .join('\n');

const usage = `offstage create [template] [folder] [--json]

Makes a project in a new folder: a lead agent, and a subagent that asks its user a question. It runs without a key, by a
script that says that it is one.

${list}

  template   default: ${DEFAULT_TEMPLATE}
  folder     new or empty; default: offstage-<template>
  --json     print the template and the folder as JSON

Exit status: 0 when the project is there, 1 when it could not be written, 2 for a wrong call.
`;

export const create: Command = commandOf({
  name: 'create',
  summary: 'make a project: a chat in a page or terminal, a voice, a telephone, a Worker',
  usage,
  async run(args, print, complain) {
    const call = readCall(args);
    const { name, template, folder, json } = call;
    const obstacle = await obstacleAt(folder);
    if (obstacle !== null) {
      complain(`${obstacle}\n`);
      return 2;
    }
    try {
      await write(name, template, resolve(folder));
    } catch (error) {
      complain(`The project was not made: ${messageOf(error)}\n`);
      return 1;
    }
    print(
      json
        ? `${JSON.stringify({ template: name, folder: resolve(folder) })}\n`
        : `Made in ${folder}: ${template.summary}.\n\n  cd ${folder}\n  npm install\n  npm start\n\n${moreOn(template)}`,
    );
    return 0;
  },
});

const KEYS = `Without a key a script answers, and says so. A model answers with OPENAI_API_KEY or AI_GATEWAY_API_KEY in the
environment, or in a file \`.env\` beside package.json.
`;

const DEPLOYING = `\`npm start\` runs it on this machine. To deploy it: \`npx wrangler login\`, once, and \`npm run deploy\`.

A deployed Worker has its keys as secrets: \`npx wrangler secret put OPENAI_API_KEY\`. Since a model costs money, it answers
only whoever has the link \`https://….workers.dev/#<token>\`: \`npx wrangler secret put ACCESS_TOKEN\`.
`;

const moreOn = ({ deploys }: Template): string => (deploys ? `${KEYS}\n${DEPLOYING}` : KEYS);

interface Call {
  readonly json: boolean;
  readonly name: string;
  readonly template: Template;
  readonly folder: string;
}

function readCall(args: readonly string[]): Call {
  const { positionals: words, values } = argumentsOf({
    args: [...args],
    allowPositionals: true,
    options: { json: { type: 'boolean', default: false } },
  });
  const [name = DEFAULT_TEMPLATE, folder = `offstage-${name}`, ...others] = words;
  const template = Object.hasOwn(TEMPLATES, name) ? TEMPLATES[name] : undefined;
  if (!template)
    throw new WrongCall(`Expected one of the templates ${names.join(', ')}, got \`${name}\``);
  if (others.length > 0)
    throw new WrongCall(
      `Expected a template and a folder, got ${words.map((word) => `\`${word}\``).join(' ')}`,
    );
  if (folder.trim() === '' || folder.includes('\0'))
    throw new WrongCall(`Expected the name of a folder, got ${JSON.stringify(folder)}`);
  return { name, template, folder, json: values.json };
}

/** Returns why no project can be created there, or null. */
async function obstacleAt(folder: string): Promise<string | null> {
  try {
    const [first] = await readdir(folder);
    return first === undefined
      ? null
      : `Expected a new or empty folder, got ${folder}, which has \`${first}\`: nothing is overwritten`;
  } catch (error) {
    const { code } = propertiesOf(error);
    if (code === 'ENOENT') return null;
    return code === 'ENOTDIR'
      ? `Expected a new or empty folder, got ${folder}, which is a file or in one: nothing is overwritten`
      : messageOf(error);
  }
}

/** The relative path is the same in the sources and in the build output. */
const root = new URL('../../../', import.meta.url);

async function write(name: string, template: Template, folder: string): Promise<void> {
  const files = new Map<string, string>();
  for (const file of [...FILES, ...template.files])
    files.set(file, await readFile(new URL(`templates/${file}`, root), 'utf8'));
  const ours = JSON.parse(await readFile(new URL('package.json', root), 'utf8')) as Manifest;
  const project = manifest(template, folder, ours);
  files.set('package.json', `${JSON.stringify(project, null, 2)}\n`);
  // If two projects had the same name, one would overwrite the other's Worker.
  const worker = files.get('wrangler.jsonc')?.replace('"offstage-cloudflare"', `"${project.name}"`);
  if (worker !== undefined) files.set('wrangler.jsonc', worker);
  const made = template.deploys ? '.wrangler/\nweb/page.js\n' : '';
  files.set('.gitignore', `node_modules/\n.env\n.token\n${made}`);
  files.set('README.md', readme(name, template));
  for (const [file, text] of files) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text, { flag: 'wx' });
  }
}

interface Manifest {
  readonly version: string;
  readonly devDependencies: Readonly<Record<string, string>>;
}

interface Project {
  readonly name: string;
  readonly [field: string]: unknown;
}

function manifest(template: Template, folder: string, ours: Manifest): Project {
  const { files, packages, speaks, deploys } = template;
  const versions = (wanted: readonly string[]): Readonly<Record<string, string | undefined>> =>
    Object.fromEntries(wanted.map((each) => [each, ours.devDependencies[each]]));
  const dependencies = {
    ...versions(PACKAGES),
    offstage: packedFile() ?? `^${ours.version}`,
    ...versions(packages),
  };
  const devDependencies = { ...versions(TOOLS), ...(deploys && WORKER_TOOLS) };
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^-+|(?<!-)-+$/g, '');
  return {
    // npm refuses a project that has the same name as one of its dependencies.
    name:
      name === '' || Object.hasOwn({ ...dependencies, ...devDependencies }, name)
        ? `my-${name || 'app'}`
        : name,
    private: true,
    type: 'module',
    scripts: {
      ...(speaks && { prestart: 'offstage voice install' }),
      ...(deploys
        ? {
            build:
              'esbuild cloudflare/page.ts --bundle --minify --format=esm --target=es2022 --outfile=web/page.js',
            start: 'wrangler dev',
            deploy: 'wrangler deploy',
          }
        : { start: `node --env-file-if-exists=.env ${files[0]}` }),
      check: 'tsc',
    },
    dependencies,
    devDependencies,
    engines: { node: NODE_RANGE },
  };
}

/**
 * Returns the package file that this code runs from, as in `npx --package ./offstage-0.1.0.tgz`, or null if the package
 * comes from a registry.
 */
function packedFile(): string | null {
  const given = (process.env['npm_config_package'] ?? '').split('\n').map((each) => each.trim());
  const file = given.find((each) => /(?:^|[\\/])offstage-[^\\/]*\.tgz$/.test(each));
  const path = file && resolve(file.replace(/^file:/, ''));
  return path && existsSync(path) ? `file:${path.replaceAll('\\', '/')}` : null;
}

function readme(name: string, template: Template): string {
  const { summary, files } = template;
  return `# ${summary[0]?.toUpperCase()}${summary.slice(1)}

Made by \`offstage create ${name}\`. \`npm install\`, then \`npm start\`; \`npm run check\` checks the types.

| file | holds |
| --- | --- |
| \`agents.ts\` | the lead agent, which talks to the user, and a subagent, which books rides and asks |
| \`model.ts\` | the choice of the model |
| \`script.ts\` | what answers without a key |
| \`${files.join('`, `')}\` | the program |

${moreOn(template)}`;
}
