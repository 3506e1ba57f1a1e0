// Checks the subjects of the commits since the rule exists: `type(scope): ` and a sentence in the imperative.
// `npm run check` fails with the subjects that break the rule. In a clone without this history, it checks nothing and
// says so.

import { execFileSync } from 'node:child_process';
import { argv, stderr, stdout } from 'node:process';
import { fileURLToPath } from 'node:url';

/** The last commit before the rule. */
const FIRST = '208889254fae0a58f19f4aa3ba2e6a152997958f';
const MAX_CHARS = 100;
const TYPES = 'build|ci|chore|docs|feat|fix|perf|refactor|revert|style|test';
const SUBJECT = new RegExp(`^(?:${TYPES})(?:\\([a-z0-9-]+\\))?!?: (?<says>(?<verb>[a-z]+)[ :].+)$`);
/** Imperatives that look like another form. */
const IMPERATIVE =
  /^(?:access|address|bring|bypass|compress|cross|discuss|embed|express|feed|focus|miss|need|pass|process|seed|shed|speed|spread)$/;
const OTHER_FORM = /(?:s|ed|ing)$/;
const NO_VERB = /^(?:a|an|the|one|two|three|each|every|no|nine|some|that|this|what|when|who)$/;

/** Returns what is wrong with the subject of a commit, or null. */
export function faultOf(subject: string): string | null {
  const { says = '', verb = '' } = SUBJECT.exec(subject)?.groups ?? {};
  if (says === '') return 'expected "type(scope): " and a verb in lower case';
  if (subject.length > MAX_CHARS) return `expected at most ${MAX_CHARS} characters`;
  if (says.includes(';')) return 'expected one sentence, got a semicolon';
  if (NO_VERB.test(verb) || (OTHER_FORM.test(verb) && !IMPERATIVE.test(verb)))
    return `expected a verb in the imperative, got "${verb}"`;
  return null;
}

function subjects(): readonly string[] | null {
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    git('merge-base', '--is-ancestor', FIRST, 'HEAD');
    return git('log', '--no-merges', '--format=%s', `${FIRST}..HEAD`).split('\n').filter(Boolean);
  } catch {
    return null;
  }
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const found = subjects();
  const faults = (found ?? []).flatMap((subject) => {
    const fault = faultOf(subject);
    return fault === null ? [] : [`${subject}\n  ${fault}\n`];
  });
  if (found === null) stdout.write('commit subjects: not checked, the history is missing\n');
  for (const fault of faults) stderr.write(fault);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
