// Reads one clause: the request that it contains, and the details of the request.

import { findDateRange } from '../agents/date-range.ts';
import { knownPlaces } from '../agents/world.ts';
import { capital, sentence } from './phrases.ts';
import { mentions, normalise, numberIn } from './words.ts';

export type ChatTopic =
  | 'greeting'
  | 'thanks'
  | 'help'
  | 'wellbeing'
  | 'name'
  | 'joke'
  | 'goodbye'
  | 'okay'
  | 'yes'
  | 'no'
  | 'nevermind'
  | 'quiet';

export type Work = 'ride' | 'table' | 'report' | 'refund' | 'menu' | 'everything' | 'unclear';

/** A detail that the user has not given is null, so the lead agent has to ask for it. */
export type Request =
  | { readonly type: 'ride'; readonly destination: string | null }
  | { readonly type: 'table'; readonly partySize: number | null }
  | { readonly type: 'report'; readonly dateRange: string | null }
  | { readonly type: 'order'; readonly orderId: string | null }
  | { readonly type: 'refund'; readonly orderId: string | null }
  /** The task for the agent that edits the menu. */
  | { readonly type: 'menu'; readonly task: string }
  | { readonly type: 'progress'; readonly work: Work; readonly about?: string }
  /** The user wants to hear something again: all of it, or one detail. */
  | { readonly type: 'again' }
  | { readonly type: 'cancel'; readonly work: Work; readonly about?: string }
  /** The user adds something to running work, or changes it. */
  | { readonly type: 'tell'; readonly work: Work; readonly words: string }
  /** The user does not want anything to start yet. */
  | { readonly type: 'wait' }
  | { readonly type: 'chat'; readonly topic: ChatTopic }
  /** The request is clear, but the demo cannot do it. */
  | { readonly type: 'unsupported'; readonly wish: string }
  | { readonly type: 'unknown' };

/** The `wish` of a request in which no word is recognised. */
export const UNNAMED_WISH = 'do that';

/** The request in one clause; `unknown` if the clause means nothing on its own. */
export function readClause(clause: string): Request {
  const plain = normalise(clause);
  const says = (...keywords: string[]): boolean => mentions(plain, ...keywords);
  const cancels =
    says('cancel') ||
    /\b(?:abort|stop|kill|drop|forget|never ?mind|(?:dont|do not) (?:need|want|bother with)|no longer (?:need|want))\b/.test(
      plain,
    );

  if (asksToWait(plain)) return { type: 'wait' };
  if (/\b(?:never ?mind|forget (?:it|about it|that))\b/.test(plain) && workIn(plain) === 'unclear')
    return chat('nevermind');
  if (
    /^(?:please |okay |ok )?(?:stop|wait|quiet|be quiet|shut up|hush|(?:thats |that is )?enough)(?: talking| speaking| now| thanks| thank you)?(?: please)?$/.test(
      plain,
    )
  )
    return chat('quiet');
  if (cancels && (/\babort\b/.test(plain) || says('cancel') || workIn(plain) !== 'unclear'))
    return { type: 'cancel', ...meantIn(plain) };
  const told = toldIn(clause, plain);
  if (told !== null)
    return {
      type: 'tell',
      work: told,
      words: sentence(capital(clause.trim().replace(/^and /i, ''))),
    };
  if (isAgain(plain)) return { type: 'again' };
  if (isProgress(plain)) return { type: 'progress', ...meantIn(plain) };
  if (says('refund') || /\b(?:my|the) money back\b/.test(plain))
    return { type: 'refund', orderId: orderIdIn(plain) };
  if (says('menu')) return { type: 'menu', task: sentence(capital(clause.trim())) };
  if (isRide(plain)) return { type: 'ride', destination: destinationIn(plain) };
  if (
    says('table', 'restaurant', 'reservation') ||
    /\b(?:book|reserve).*\b(?:dinner|lunch)\b/.test(plain)
  )
    return { type: 'table', partySize: partySizeIn(plain) };
  if (
    says('report', 'sales', 'revenue', 'analytics', 'turnover') ||
    /\bhow did we do\b/.test(plain)
  )
    return { type: 'report', dateRange: findDateRange(clause) };
  if (isOrder(plain)) return { type: 'order', orderId: orderIdIn(plain) };
  const topic = chatTopic(plain);
  if (topic) return chat(topic);
  const wish = wishes.find(([, pattern]) => pattern.test(plain))?.[0];
  if (wish) return { type: 'unsupported', wish };
  if (isDistortedRide(plain)) return { type: 'ride', destination: destinationIn(plain) };
  return isDemand(plain) ? { type: 'unsupported', wish: UNNAMED_WISH } : { type: 'unknown' };
}

/** The work, and the detail that distinguishes it from others of its kind: "the ride to the station". */
function meantIn(plain: string): { readonly work: Work; readonly about?: string } {
  const about = towardsKnownPlace.exec(plain)?.[1] ?? findDateRange(plain);
  return { work: workIn(plain), ...(about && { about }) };
}

/** "Don't do anything yet." */
function asksToWait(plain: string): boolean {
  return (
    /\b(?:dont|do not) (?:\w+ ){1,4}yet\b/.test(plain) ||
    /^(?:but )?not (?:just )?yet$|\bonly thinking out loud\b|\bjust thinking out loud\b/.test(plain)
  );
}

const ADDS =
  /^(?:(?:and|oh|also|please|okay|ok|well|um|uh|can you|could you|would you) )*(?:include|add|put in|throw in|take in|cover)\b/;
const CHANGES =
  /\b(?:make (?:it|that|the report|the table|the ride)|(?:change|switch) (?:it|that|the \w+)|i meant?|instead|rather)\b|^(?:(?:no|sorry|wait|oh|actually|and|um|uh) )*not (?:for|on|to|in|the|last|this|from)\b/;
const GUESTS =
  /\b(?:we are|were|we will be|there (?:are|will be)|well be) (?:now |actually |only )?(\w+)\b/;

/** The destination to which a message changes a ride; null if there is none. */
export function destinationOf(message: string): string | null {
  const place = towardsKnownPlace.exec(
    normalise(message).replace(/\bnot to (?:the |my )?\w+/, ''),
  )?.[1];
  return place === undefined ? null : `the ${place}`;
}

/** The number of guests to which a message changes a table; null if there is none. */
export function guestsOf(message: string): number | null {
  const plain = normalise(message).replace(/\bnot (?:for )?\w+/, '');
  return partySizeIn(plain) ?? numberIn(plain);
}

/** The running work that the user adds to or changes; null if the user asks for something else. */
function toldIn(clause: string, plain: string): Work | null {
  const adds = ADDS.test(plain);
  const changes = CHANGES.test(plain);
  const isMore =
    /\b(?:too|as well|also)\b/.test(plain) && !mentions(plain, 'report', 'ride', 'table');
  const named = workIn(plain);
  const isKnown = named === 'report' || named === 'table' || named === 'ride';
  const period = findDateRange(clause);
  if (period !== null && (adds || changes || isMore)) return 'report';
  if (changes && towardsKnownPlace.test(plain)) return 'ride';
  const guests = partySizeIn(plain) ?? numberIn(plain);
  const isOfUs = numberIn(GUESTS.exec(plain)?.[1] ?? '') !== null;
  if (guests !== null && (changes || isOfUs) && !/\b(?:dollars?|bucks)\b/.test(plain))
    return 'table';
  return adds && isKnown ? named : null;
}

function chat(topic: ChatTopic): Request {
  return { type: 'chat', topic };
}

function isAgain(plain: string): boolean {
  return (
    /\bwhat (?:did you say|was that)\b|\b(?:say|repeat) (?:that|it)\b|\bcome again\b|^(?:sorry )?(?:pardon|what)(?: sorry)?$/.test(
      plain,
    ) ||
    /\bhow much (?:was|is|did|does|will) (?:it|that)\b|\bwhat (?:did|does|will) (?:it|that) cost\b/.test(
      plain,
    ) ||
    /\bwhen (?:does|will|is) (?:it|he|she|the (?:car|driver|ride)) (?:come|coming|be here|arrive)\b/.test(
      plain,
    )
  );
}

function isRide(plain: string): boolean {
  return (
    mentions(plain, 'ride', 'cab', 'taxi', 'uber', 'lift') ||
    /\b(?:take|drive|bring|get) (?:me|us) to\b/.test(plain) ||
    /\b(?:need|want|have|like|got) to (?:go|get|be|travel) (?:to|at)\b/.test(plain) ||
    /\b(?:book|get|order|need|call|want)\b.*\bcar\b/.test(plain)
  );
}

const towardsKnownPlace = new RegExp(`\\bto (?:the |my )?(${knownPlaces.join('|')})\\b`);

/** "But me arrived to the airport": if nothing else fits, a text with a destination asks for a ride. */
function isDistortedRide(plain: string): boolean {
  return (
    towardsKnownPlace.test(plain) ||
    /^(?:book|but|butt|look|took|put|hook) me (?:a|an|in|and|ever|the)\b/.test(plain)
  );
}

/** The destination in "book me a ride to the airport please". */
function destinationIn(plain: string): string | null {
  const wish = plain.replace(
    /\b(?:need|want|have|like|got) to (?:book|get|order|go|be|travel|have)\b(?= (?:a|an|the|me|us|to|at)\b)/g,
    '',
  );
  const found = /\b(?:to|towards|for) (?!me\b|us\b|a ride\b)(.+)$/.exec(wish)?.[1];
  return found ? cleanPlace(found) : null;
}

/** A place without the surrounding words; null if nothing is left. */
export function cleanPlace(plain: string): string | null {
  const fillers =
    /^(?:uh|um|and|well|okay|ok|yes|yeah|please|just|i|we|would|id|like|want|need|lets|to|go|get|be|the address is|its|it is|is|take|bring|drive|me|us|at|make it)\s+/;
  let place = plain;
  while (fillers.test(place)) place = place.replace(fillers, '');
  place = place
    .replace(
      /\b(?:please|thanks|thank you|now|right now|today|tonight|tomorrow|asap|as soon as possible|for me|if you can)$/g,
      '',
    )
    .trim()
    .replace(/\bplease$/, '')
    .trim();
  const isWord = /^(?:to|the|a|an|my|uh|um|please|it|that|go|ride)?$/.test(place);
  return isWord || place.split(' ').length > 8 ? null : place;
}

function partySizeIn(words: string): number | null {
  const guests = /\b(\w+) (?:people|persons|guests)\b/.exec(words)?.[1];
  const counted = guests === undefined ? null : numberIn(guests);
  if (counted !== null) return counted;
  // A recogniser sometimes writes "four four" for "for four".
  const plain = withoutTimes(words).replace(forNumber, 'for ');
  for (const [, after = ''] of plain.matchAll(/\b(?:for|of|we are|were) (?:the )?(\w+)/g)) {
    if (after === 'to' || after === 'too') return 2;
    if (after === 'me') return 1;
    const size = numberIn(after);
    if (size !== null) return size;
  }
  return partySizeWord(plain);
}

const HOUR = '(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|1[0-2]|[1-9])';
const forNumber = new RegExp(`\\b(?:four|4) (?=${HOUR}\\b)`);
const MINUTES = '(?:thirty|fifteen|forty five|o ?clock|[0-5]\\d|pm|p m)';
const times = new RegExp(
  `\\b(?:(?:at|for|by|around) )?(?:(?:half past|quarter (?:past|to)) ${HOUR}|${HOUR} ${MINUTES}(?: pm| p m)?|(?<=at )${HOUR}(?! (?:people|persons|guests)))\\b`,
  'g',
);

/** "At seven thirty for four": a time of day is not a number of guests. */
function withoutTimes(plain: string): string {
  return plain.replace(times, ' ').replace(/\s+/g, ' ').trim();
}

export function partySizeWord(plain: string): number | null {
  if (/\b(?:just me|only me|alone)\b/.test(plain)) return 1;
  if (/\b(?:the )?(?:two|2) of us\b|\bme and my\b|\bcouple\b|^(?:to|too|for to)$/.test(plain))
    return 2;
  return plain === 'for' ? 4 : null;
}

function isOrder(plain: string): boolean {
  return (
    /\b(?:my|the|last|latest|our) (?:order|package|parcel|delivery|desk|lamp)\b/.test(plain) ||
    /\border (?:number )?(?:\d|ten|[a-z]+ty)\b/.test(plain) ||
    /\border (?:number|status)\b|\bstatus of (?:an |the )?order\b|\border \d+/.test(plain)
  );
}

const tens: Readonly<Record<string, number>> = {
  ten: 10,
  twenty: 20,
  thirty: 30,
  forty: 40,
  fifty: 50,
  sixty: 60,
  seventy: 70,
  eighty: 80,
  ninety: 90,
};

/** "order ten forty two", "order 10 42" and "order 1042" are the same order. */
function orderIdIn(plain: string): string | null {
  let digits = '';
  let open: number | null = null;
  for (const word of plain.split(' ')) {
    const ten = tens[word];
    const one = numberIn(word);
    if (ten !== undefined) {
      if (open !== null) digits += open;
      open = ten;
    } else if (/^\d+$/.test(word)) {
      if (open !== null) digits += open;
      open = null;
      digits += word;
    } else if (one !== null) {
      digits += open !== null && open > 10 && one < 10 ? open + one : `${open ?? ''}${one}`;
      open = null;
    }
  }
  if (open !== null) digits += open;
  return digits.length >= 2 ? digits : null;
}

function isProgress(plain: string): boolean {
  return (
    (/\bhow (?:is|are|s) (?:it|that|things|the (?:ride|report|table|work)|my (?:ride|report|table))\b.*\b(?:going|coming|doing)?/.test(
      plain,
    ) &&
      !/\bhow are (?:you|things)\b/.test(plain)) ||
    /\b(?:hows (?:it|that|the|my)|how far|how long|how much longer|what are you (?:doing|working on)|whats (?:running|going on|happening)|progress)\b/.test(
      plain,
    ) ||
    /\b(?:are you|is it|is that|is the (?:ride|report|table)|is my (?:ride|report|table))\b.*\b(?:done|ready|finished|booked|yet)\b/.test(
      plain,
    ) ||
    (/\b(?:status|where is|wheres)\b/.test(plain) && /\b(?:ride|report|table)\b/.test(plain))
  );
}

export function workIn(plain: string): Work {
  if (mentions(plain, 'everything', 'all of it', 'all of them', 'both', 'all')) return 'everything';
  if (mentions(plain, 'ride', 'cab', 'taxi', 'lift', 'booking')) return 'ride';
  if (mentions(plain, 'table', 'restaurant', 'dinner', 'reservation')) return 'table';
  if (mentions(plain, 'report', 'sales')) return 'report';
  if (mentions(plain, 'refund')) return 'refund';
  if (mentions(plain, 'menu')) return 'menu';
  return 'unclear';
}

const topics: readonly (readonly [ChatTopic, RegExp])[] = [
  [
    'help',
    /\b(?:help|what can you do|what do you do|what else|what can i (?:do|say|ask)|your (?:skills|abilities)|options do i have|how does this work)\b/,
  ],
  [
    'wellbeing',
    /\bhow (?:are|re) (?:you|things)\b|\bhows it going\b|\bhow do you do\b|\bhow is (?:it going|your day)\b/,
  ],
  [
    'name',
    /\b(?:who are you|what are you|whats your name|what is your name|are you (?:a )?(?:robot|human|real|ai|bot))\b/,
  ],
  ['joke', /\bjokes?\b|\bsomething funny\b|\bmake me laugh\b/],
  [
    'thanks',
    /\b(?:thanks|thank you|thank|cheers|much appreciated)\b|\bvery much$|^(?:great|awesome|perfect|wonderful|nice|cool|excellent|amazing)(?: (?:job|work))?$/,
  ],
  ['goodbye', /\b(?:bye|goodbye|good bye|see you|good night|thats all|that is all)\b/],
  ['greeting', /^(?:hi|hello|hallo|hey|good (?:morning|evening|afternoon|day)|greetings|howdy)\b/],
  ['yes', /^(?:yes|yeah|yep|sure|please do|do it|go ahead|of course|try again|retry)\b/],
  ['no', /^(?:no|nope|nah|not now|no thanks)\b/],
  [
    'okay',
    /^(?:ok|okay|alright|all right|mhm|mm|mm hm|uh huh|hm+|i see|got it|right|fine|understood)$/,
  ],
];

function chatTopic(plain: string): ChatTopic | null {
  return topics.find(([, pattern]) => pattern.test(plain))?.[0] ?? null;
}

const wishes: readonly (readonly [string, RegExp])[] = [
  ['check the weather', /\b(?:weather|rain|raining|sunny|forecast|temperature)\b/],
  ['read the news', /\bnews\b|\bheadlines?\b/],
  ['play music', /\b(?:music|song|playlist|radio)\b/],
  ['make calls', /\b(?:phone|dial|call (?!me a|a|us a)\w+)\b/],
  ['send messages', /\b(?:email|e mail|mail|text|message|sms|whatsapp)\b/],
  ['set alarms or timers', /\b(?:alarm|timer|remind|reminder)\b/],
  ['tell the time', /\bwhat time\b|\bthe time\b|\bwhat day\b|\bthe date\b/],
  ['book flights', /\b(?:flight|plane|fly)\b/],
  ['book hotels', /\b(?:hotel|hostel|room)\b/],
  ['order food', /\b(?:pizza|food|burger|sushi|coffee)\b/],
  ['translate', /\btranslat/],
  ['do sums', /\b(?:calculate|plus|minus|times|divided)\b/],
  ['search the web', /\b(?:google|search|look up|wikipedia)\b/],
];

function isDemand(plain: string): boolean {
  const demand =
    /^(?:can|could|would|will) you\b|^(?:please )?(?:play|call|send|tell me|show|find|buy|order|open|turn|set|write|read|make|give|book|reserve)\b/;
  return demand.test(plain);
}
