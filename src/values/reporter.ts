// Reports errors that no caller handles. They go to the app's listener, to the channel `offstage:error` of
// `node:diagnostics_channel` and, during development without a listener, to the terminal, with one line per error.
//
// Invariants
//   REPORT-1. If a listener throws or rejects, its error is dropped.
//   REPORT-2. The terminal shows each line once, and shows nothing in production, in tests, or with `OFFSTAGE_LOG=off`.

import { codeOf, messageOf, quietly } from './errors.ts';
import { withoutHidden } from './visible.ts';

/** A message on the channel `offstage:error`. */
interface ReportedError {
  readonly error: unknown;
  /** The error's code, as in docs/errors.md, or `INTERNAL`. */
  readonly code: string;
  /** The part of the runtime that reports the error, such as `transport` or `onToolCall`. */
  readonly where: string;
}

interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: ReportedError): void;
}

interface Diagnostics {
  channel?(name: string): Channel;
}

const MAX_SHOWN = 100;

// The channel is looked up rather than imported, because some runtimes do not have Node's modules.
const diagnostics: Diagnostics | undefined = globalThis.process?.getBuiltinModule?.(
  'node:diagnostics_channel',
);
const channel = diagnostics?.channel?.('offstage:error');
const shown = new Set<string>();

/**
 * Returns a function that reports errors to `onError`, and never throws.
 * @param part the default of `where`
 */
export function reporter<Told extends readonly [error: unknown, where?: string]>(
  onError: ((...told: Told) => unknown) | undefined,
  part = '',
): (...told: Told) => void {
  const tell = quietly(onError);
  return (...told) => {
    const [error, where = part] = told;
    if (channel?.hasSubscribers) channel.publish({ error, code: codeOf(error), where });
    if (!onError) inTerminal(error, where);
    tell(...told);
  };
}

/** Writes an error to the terminal during development if the app has no listener (REPORT-2). */
export function inTerminal(error: unknown, where: string): void {
  const { NODE_ENV: mode, OFFSTAGE_LOG: log } = globalThis.process?.env ?? {
    NODE_ENV: 'production',
  };
  if (mode === 'production' || mode === 'test' || log === 'off') return;
  const line = `offstage: ${where}: ${codeOf(error)}: ${messageOf(error).split('\n', 1).join('')}`;
  if (shown.has(line)) return;
  if (shown.size >= MAX_SHOWN) shown.clear();
  shown.add(line);
  // oxlint-disable-next-line no-console -- the one place of the runtime that writes to the terminal (REPORT-2)
  console.warn(withoutHidden(line));
}
