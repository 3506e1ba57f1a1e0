// Finds the optional packages of this adapter, or names them in an error that says how to add them.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import type * as OnnxRuntime from 'onnxruntime-node';
import { ConfigurationError } from '../../../values/errors.ts';

const require = createRequire(import.meta.url);

/**
 * Returns the address of a file of an optional package.
 * @throws {ConfigurationError} `MISSING_DEPENDENCY`
 */
export function locatePeer(packageName: string, file: string): URL {
  // By the search path and not by `exports`, which hides the weights of some packages.
  for (const folder of require.resolve.paths(packageName) ?? []) {
    const manifest = `${folder}/${packageName}/package.json`;
    if (existsSync(manifest)) return new URL(file, pathToFileURL(manifest));
  }
  throw missing(packageName);
}

/**
 * Loads an optional package.
 * @throws {ConfigurationError} `MISSING_DEPENDENCY`
 */
export async function importPeer<Module>(
  packageName: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (cause) {
    throw missing(packageName, cause);
  }
}

function missing(packageName: string, cause?: unknown): ConfigurationError {
  const reason = cause instanceof Error ? ` (${cause.message})` : '';
  return new ConfigurationError(
    'MISSING_DEPENDENCY',
    `localVoice needs the package ${packageName}, which could not be loaded${reason}: npm install ${packageName}`,
    { cause },
  );
}

/** The used part of onnxruntime-node. */
export type Onnx = Pick<typeof OnnxRuntime, 'InferenceSession' | 'Tensor'>;

/** One thread is faster than two for models this small, and leaves the other cores free. */
export const SESSION_OPTIONS = {
  executionProviders: ['cpu'],
  executionMode: 'sequential',
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  // Errors are thrown, so they need not be printed.
  logSeverityLevel: 4,
} as const satisfies OnnxRuntime.InferenceSession.SessionOptions;

/** @throws {ConfigurationError} `MISSING_DEPENDENCY` */
export async function loadOnnx(): Promise<Onnx> {
  const module = await importPeer('onnxruntime-node', () => import('onnxruntime-node'));
  // A CommonJS module: Node may not see its names.
  return (module as { readonly default?: Onnx }).default ?? module;
}
