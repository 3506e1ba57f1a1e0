// Reads the facts about this machine for the doctor.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Machine } from './findings.ts';

interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

export function thisMachine(): Machine {
  const { peerDependencies = {} } = manifestAbove(fileURLToPath(import.meta.url), 'offstage') ?? {};
  return {
    nodeVersion: process.versions.node,
    variables: process.env,
    range: (name) => peerDependencies[name] ?? null,
    installed(name) {
      let entry: string;
      try {
        // Resolves the package as Offstage itself does.
        entry = fileURLToPath(import.meta.resolve(name));
      } catch {
        return null;
      }
      return manifestAbove(entry, name)?.version ?? null;
    },
  };
}

/** Finds the manifest of the package that a file belongs to; packages rarely export it. */
function manifestAbove(file: string, packageName: string): Manifest | null {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
      if (manifest.name === packageName) return manifest;
    } catch {
      // No manifest in this folder: look in the parent.
    }
  }
  return null;
}
