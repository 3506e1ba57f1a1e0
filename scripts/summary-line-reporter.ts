// Ends a test run with one plain line, `N passed, N failed`, for a CI system. Besides failed tests, it counts each file
// or suite that could not run and each error outside a test. Before that line, `npm test` lists the suites that it
// skipped.

import type { Reporter, SerializedError, TestModule } from 'vitest/node';
import { otherSuites } from './test-suites.ts';

export default class SummaryLineReporter implements Reporter {
  private line = '';

  constructor() {
    // Another reporter writes the usual summary before this line.
    process.once('exit', () => process.stdout.write(this.line));
  }

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const counts = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const suite of [module, ...module.children.allSuites()]) {
        if (suite.errors().length > 0) counts.failed += 1;
      }
      for (const test of module.children.allTests()) counts[test.result().state] += 1;
    }
    const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : '';
    this.line = `${leftOut()}${counts.passed} passed, ${counts.failed} failed${skipped}\n`;
  }
}

function leftOut(): string {
  if (process.env['npm_lifecycle_event'] !== 'test') return '';
  const commands = Object.entries(otherSuites).map(
    ([command, runs]) => `  npm run ${command.padEnd(15)}  ${runs}\n`,
  );
  return `LEFT OUT by npm test (npm run test:all runs what CI runs):\n${commands.join('')}\n`;
}
