// The runtime of the listening models: onnxruntime-node, an optional peer.

import type * as OnnxRuntime from 'onnxruntime-node';
import { importPeer } from './peer-packages.ts';

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
