// The words for side effects: the verbs by which a report claims one, and the names of tools that have it.
// English. In a language that is not listed, no claims are found: a judge model can read it.

/** The rough kind of a side effect; a verb may have two kinds. */
export type EffectKind = 'send' | 'write' | 'book' | 'delete';

export interface EffectVerb {
  readonly kinds: readonly EffectKind[];
  /** Beginnings of words in the names of its tools. */
  readonly stems: readonly string[];
  /**
   * The verb claims an effect only beside a thing outside the report: a report also "adds" a number,
   * "updates" a plan.
   */
  readonly needsThing: boolean;
}

const rows: readonly [
  past: string,
  kinds: EffectKind | readonly EffectKind[],
  stems: string,
  needsThing?: 'thing',
][] = [
  ['sent|resent', 'send', 'send sent dispatch'],
  ['emailed|e-mailed', 'send', 'email mail'],
  ['mailed', 'send', 'mail'],
  ['messaged|texted', 'send', 'message text sms'],
  ['notified|alerted', 'send', 'notif alert'],
  ['forwarded', 'send', 'forward'],
  ['replied', 'send', 'repl respond answer'],
  ['invited', ['send', 'book'], 'invit'],
  ['submitted', ['send', 'write'], 'submit file'],
  ['posted|published|tweeted', ['send', 'write'], 'post publish tweet'],
  ['shared', ['send', 'write'], 'share', 'thing'],
  ['saved|stored', 'write', 'save stor persist remember'],
  ['uploaded', ['write', 'send'], 'upload'],
  ['exported', 'write', 'export', 'thing'],
  ['deployed|installed|committed', 'write', 'deploy install commit push releas'],
  ['created', ['write', 'book'], 'creat new', 'thing'],
  ['added', ['write', 'book'], 'add insert append', 'thing'],
  [
    'updated|renamed|moved',
    ['write', 'book', 'delete'],
    'updat edit modif renam mov patch',
    'thing',
  ],
  ['recorded|logged|registered', 'write', 'record log regist', 'thing'],
  ['enabled|disabled|configured', 'write', 'enabl disabl config set toggl', 'thing'],
  ['booked|reserved|rebooked', 'book', 'book reserv'],
  ['scheduled|rescheduled', ['book', 'write'], 'schedul calendar appoint'],
  ['ordered|bought|purchased', 'book', 'order buy purchas checkout cart'],
  ['paid|transferred|charged|refunded', ['book', 'send'], 'pay paid transfer charg refund'],
  ['subscribed|rented', 'book', 'subscri rent'],
  ['deleted|erased', 'delete', 'delet eras remov drop clear purg'],
  ['removed', ['delete', 'write'], 'remov delet', 'thing'],
  ['cancelled|canceled|revoked', ['delete', 'book'], 'cancel revok'],
  ['unsubscribed|archived', ['delete', 'write'], 'unsubscri archiv'],
];

const verbs = new Map<string, EffectVerb>(
  rows.flatMap(([past, kinds, stems, thing]) =>
    past.split('|').map((word): [string, EffectVerb] => [
      word,
      {
        kinds: typeof kinds === 'string' ? [kinds] : kinds,
        stems: stems.split(' '),
        needsThing: thing === 'thing',
      },
    ]),
  ),
);

/** All words that claim an effect, for a pattern. */
export const CLAIMING = [...verbs.keys()].toSorted((a, b) => b.length - a.length).join('|');

/** Returns the effect that this past tense claims. */
export function effectVerb(past: string): EffectVerb | undefined {
  return verbs.get(past.toLowerCase());
}

/** Things outside a report: creating one of these is a side effect, creating a list is not. */
export const THINGS: ReadonlySet<string> = new Set(
  (
    'account accounts alarm appointment appointments basket board booking bookings branch calendar cart channel ' +
    'contact contacts crm customer database email entry event events file files folder invoice invoices issue issues ' +
    'memory meeting meetings note notes order orders playlist profile record records reminder reminders repository ' +
    'reservation row rows server setting settings sheet spreadsheet subscription table-booking ticket tickets timer user users wiki'
  ).split(' '),
);

const READING = new Set(
  (
    'get list search find read fetch lookup look check query view show load describe browse count calculate compute ' +
    'convert summarize summarise analyze analyse compare translate extract parse scan inspect monitor status info ' +
    'weather forecast web wikipedia retrieve recall ask request_input report_progress think plan verify validate test'
  ).split(' '),
);

/** Verbs that may do anything, so that the name of the tool tells nothing. */
const ANYTHING = new Set(
  (
    'run execute exec call invoke perform do make use http post put patch api request curl browser computer shell bash ' +
    'terminal command python javascript code script sql mcp action tool workflow operate control'
  ).split(' '),
);

/** The side effects that the name of a tool indicates. */
export interface ToolNature {
  readonly words: readonly string[];
  /** The tool only reads. */
  readonly reads: boolean;
  /** The name tells nothing. */
  readonly unclear: boolean;
  readonly kinds: ReadonlySet<EffectKind>;
}

export function toolNature(toolName: string): ToolNature {
  const words = toolName
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== '');
  const kinds = new Set<EffectKind>();
  for (const word of words)
    for (const verb of verbs.values())
      if (verb.stems.some((stem) => word.startsWith(stem)))
        for (const kind of verb.kinds) kinds.add(kind);
  // The verb comes first, or last: `search_orders`, `order_status`.
  const reads = READING.has(words[0] ?? '') || READING.has(words.at(-1) ?? '');
  const unclear = words.some((word) => ANYTHING.has(word)) || kinds.size === 0;
  return { words, reads: reads && !words.some((word) => ANYTHING.has(word)), unclear, kinds };
}

/** Splits a declared effect such as `email.sent`; its last part is the verb that a claim would use. */
export function declaredEffect(effect: string): { readonly word: string; readonly noun: string } {
  const parts = effect.toLowerCase().split(/[.:/\s]+/);
  return { word: parts.at(-1) ?? '', noun: parts.at(-2) ?? '' };
}
