// The tests, grouped by the command that runs them. `npm test` runs the quick part, which takes a few minutes on two
// cores. `longTests` lists the files that take much longer than the others; a group that needs a program or more
// packages has its own command. CI runs all of them except `onDemand`.

/** Searches through every state, long random runs, and programs that are started and killed. */
export const longTests: readonly string[] = [
  // The longest files start first.
  'test/testing/conformance/gemini-live.test.ts',
  'test/machines/turn-machine.test.ts',
  'test/machines/mutations.test.ts',
  'test/machines/composition.test.ts',
  'test/machines/replay.test.ts',
  'test/suites/runs/runs-conformance.test.ts',
  'test/actors/runtime/chart-steps.test.ts',
  'test/dialogues/gemini-live.test.ts',
  // Every state of a machine, and each planted bug.
  'test/machines/{outbox,question,session,subagent}-machine.test.ts',
  'test/machines/{turn-system,why-waiting}.test.ts',
  'test/suites/homes/home-conformance.test.ts',
  // Every voice with each case in its suite.
  'test/dialogues/openai-live.test.ts',
  'test/testing/conformance/{openai-live,with-voice}.test.ts',
  // Random conversations, trees, words and arguments.
  'test/fuzz/api.fuzz.test.ts',
  'test/actors/pool/session-pool.property.test.ts',
  'test/language/consent.property.test.ts',
  'test/scenarios/{tree,voice-chaos}.property.test.ts',
  'test/scenarios/providers.test.ts',
  'test/testing/simulate/{planted-faults,seeds,simulate,voice-stage}.test.ts',
  // Programs that are started and killed.
  'test/adapters/acp/acp-agent.test.ts',
  'test/adapters/mcp/mcp-server.test.ts',
  'test/adapters/{a2a,acp,email,mcp,sqlite-journal}/kill-recovery.test.ts',
  'test/examples/numbered.test.ts',
  'test/scenarios/recovery/{detached-after-a-kill,schedules-of-a-year}.test.ts',
  'test/scenarios/recovery/reach-after-a-kill.test.ts',
  // How time grows with size.
  'test/{ground,language}/linear-time.test.ts',
];

/** The tests that run again with the oldest XState version that `package.json` allows. */
export const testsWithOldestXState: readonly string[] = [
  'test/actors/runtime/**/*.test.ts',
  'test/actors/session/{session-actor,session-logic,snapshot-forms}.test.ts',
  'test/scenarios/recovery/frozen-stories.test.ts',
  'test/testing/check/**/*.test.ts',
];

/** The suites that `npm test` skips: the command and the content of each. */
export const otherSuites: Readonly<Record<string, string>> = {
  'test:long':
    'every state of the machines, random play, killed programs, and the oldest XState that is allowed',
  'test:postgres': 'the journal in PostgreSQL; needs its server programs',
  'test:speech': 'the built-in speech models, and the dialogues in rooms',
  'test:browser': 'the pages of the demo and the inspector; needs Chromium',
  'test:cloudflare': 'sessions in a Durable Object; installs workerd',
  'test:engines': 'jobs and runs on Restate and Temporal; installs their servers',
  'test:frameworks': 'web frameworks, Bun, Deno, and pages of Vue and Svelte; installs them',
  'test:site': 'the site of the documents; builds it, needs Chromium',
  'test:claude': 'the real Claude Code; installs it (430 MB)',
  'test:codex': 'the real Codex; installs it (460 MB)',
};

/** The suites that neither `npm run test:all` nor CI runs, because the programs they need are large. */
export const onDemand: readonly string[] = ['test:claude', 'test:codex'];
