// Dialogues about running work by a person who has not seen the code: they wrote the user's lines, and what must and
// must not happen.

import { settle, status, stop, tell, type Call, type Steered } from './steered.ts';

const hearingAids: Call = ['research', { about: 'hearing aids for an iPhone, for the mother' }];
const italian: Call = ['table', { place: 'an Italian on Saturday', guests: 'four' }];
const runs = ['research', 'running'] as const;

export const otherPeople: readonly Steered[] = [
  {
    name: 'the thing for my mum',
    tools: { research: {}, table: {} },
    begins: [hearingAids, italian],
    lines: [
      {
        says: "Hey, uh, how's it going with the… the thing for my mum?",
        calls: [status('hearing aids')],
        comes: 'tasks',
      },
      { says: 'Okay. And the other one?', calls: [status('table')], comes: 'tasks' },
      { says: 'Mhm. And roughly how long do they still need?', reply: 'I cannot tell.' },
    ],
    tasks: [runs, ['table', 'running']],
  },
  {
    name: 'where are we with everything',
    tools: { report: {}, order: {}, appointment: {} },
    begins: [
      ['report', { about: 'heat pumps for an old house' }],
      ['order', { what: 'printer toner, black' }],
      ['appointment', { with: 'the dentist', when: 'next week' }],
    ],
    lines: [
      { says: 'So where are we with, like, everything?', calls: [status()], comes: 'tasks' },
      {
        says: 'Wait, what was that last— the teeth one, what did they say?',
        calls: [status('dentist appointment')],
        comes: 'tasks',
      },
      {
        says: 'Right, right. And the ink, has that been, um, has that gone out already?',
        calls: [status('printer toner')],
        comes: 'tasks',
      },
    ],
    tasks: [
      ['report', 'running'],
      ['order', 'running'],
      ['appointment', 'running'],
    ],
    said: [/heat pumps.*toner.*dentist/s],
  },
  {
    name: 'is the mail to Karen done',
    tools: { mail: {} },
    begins: [
      ['mail', { to: 'Karen Hill', about: 'the rent deposit' }],
      ['mail', { to: 'Karin Hille', about: 'the choir weekend' }],
    ],
    lines: [
      { says: 'Is the mail to Karen done yet?', calls: [status('mail')], comes: 'tasks' },
      { says: 'The, uh, the money one.', calls: [status('rent deposit')], comes: 'tasks' },
      { says: "'kay, just tell me when it's there.", reply: 'I will.' },
    ],
    tasks: [
      ['mail', 'running'],
      ['mail', 'running'],
    ],
    said: [/deposit.*choir/s],
  },
  {
    name: 'forget the taxi',
    tools: { ride: {}, research: {}, mail: {} },
    begins: [
      ['ride', { to: 'the airport', at: 'tomorrow, 5 a.m.' }],
      ['research', { about: "hotels close to Porto's old town" }],
      ['mail', { to: 'the landlord', about: 'the heating' }],
    ],
    lines: [
      {
        says: "Oh, you know what, forget the taxi, my brother's driving me.",
        calls: [stop('ride to the airport')],
        comes: 'stopped',
      },
      {
        says: "But the hotel stuff, that's still running, yeah?",
        calls: [status('hotels in Porto')],
        comes: 'tasks',
      },
      { says: 'Good. And he, uh, he knows about it, no need to write him or anything.' },
    ],
    tasks: [['ride', 'cancelled'], runs, ['mail', 'running']],
    said: [/stopped/],
  },
  {
    name: 'stop, no, not that',
    tools: { research: {}, comparison: {} },
    begins: [
      ['research', { about: 'electric cargo bikes under 4,000 euros' }],
      ['comparison', { of: 'bike insurance' }],
    ],
    lines: [
      { says: 'Stop, stop, stop.', reply: 'Okay.' },
      { says: "No, I mean, keep looking, just don't read me all of that.", reply: 'All right.' },
      {
        says: "Actually the insurance one you can drop. I haven't even got the bike yet, have I.",
        calls: [stop('bike insurance')],
        comes: 'stopped',
      },
    ],
    tasks: [runs, ['comparison', 'cancelled']],
  },
  {
    name: 'cancel the reservation: which one',
    tools: { table: {}, order: {} },
    begins: [
      ['table', { at: 'a sushi place on Friday', guests: 'two' }],
      ['table', { at: 'a pub on Sunday', guests: 'eight' }],
      ['order', { what: 'flowers for the sister' }],
    ],
    lines: [
      {
        says: "Can you cancel the reservation? We're not going.",
        calls: [stop('table')],
        comes: 'unclear',
      },
      {
        says: 'The first one. No, hang on, the big one. The one with everybody.',
        calls: [stop('table for eight')],
        comes: 'stopped',
      },
      { says: 'And the flowers, leave those.', reply: 'The flowers go on, yes?' },
    ],
    tasks: [
      ['table', 'running'],
      ['table', 'cancelled'],
      ['order', 'running'],
    ],
    said: [/sushi.*pub/],
  },
  {
    name: 'oh and also quiet',
    tools: { research: {} },
    begins: [['research', { about: 'dishwashers under 600 euros' }]],
    lines: [
      {
        says: "Oh, and it should be quiet, 'cause the kitchen's, like, open. To the living room.",
        calls: [tell('It should be quiet: the kitchen is open to the living room.')],
        comes: 'told',
      },
      {
        says: "And, um… what's it called… the cutlery thing, at the top. That drawer.",
        calls: [tell('With a cutlery drawer at the top.')],
        comes: 'told',
      },
      {
        says: 'And my wife says not the one we had. The, the Bosch.',
        calls: [tell('Not the Bosch that they had.')],
        comes: 'told',
      },
    ],
    tasks: [
      [
        'research',
        'running',
        'It should be quiet: the kitchen is open to the living room.',
        'With a cutlery drawer at the top.',
        'Not the Bosch that they had.',
      ],
    ],
  },
  {
    name: 'put Jonas in as well',
    tools: { mail: {}, table: {} },
    begins: [
      ['mail', { to: 'Priya and Sam', about: "Thursday's meeting" }],
      ['table', { guests: 'five', when: 'Thursday evening' }],
    ],
    lines: [
      { says: 'Can you put Jonas in as well?', reply: 'In the mail, at the table, or both?' },
      {
        says: "On the mail. And— well, yeah, he's coming to dinner too, so six.",
        calls: [tell('Also to Jonas.', 'mail'), tell('Six guests.', 'table')],
        comes: 'told',
      },
      {
        says: "And say in it that there's, uh, there's no projector, they have to bring their own laptops.",
        calls: [tell('Say that there is no projector: bring your own laptop.', 'mail')],
        comes: 'told',
      },
    ],
    tasks: [
      [
        'mail',
        'running',
        'Also to Jonas.',
        'Say that there is no projector: bring your own laptop.',
      ],
      ['table', 'running', 'Six guests.'],
    ],
  },
  {
    name: "while you're at it",
    tools: { research: {}, order: {} },
    begins: [
      ['research', { about: "the history of the user's street in Leeds" }],
      ['order', { what: 'dog food, 12 kilos' }],
    ],
    lines: [
      {
        says: "While you're at it, get some of those chewy stick things. For the teeth.",
        calls: [tell('Also dental chews for the dog.', 'dog food order')],
        comes: 'told',
      },
      {
        says: "And, um, if there's anything about the old— shush! Shush. Sorry. About the old tram depot, that'd be nice too.",
        calls: [tell('Also the old tram depot.', 'history of the street')],
        comes: 'told',
      },
      {
        says: "With pictures. If that's, you know, possible.",
        calls: [tell('With pictures of the depot, if possible.', 'research')],
        comes: 'told',
      },
    ],
    tasks: [
      [
        'research',
        'running',
        'Also the old tram depot.',
        'With pictures of the depot, if possible.',
      ],
      ['order', 'running', 'Also dental chews for the dog.'],
    ],
  },
  {
    name: 'yes, but on Friday',
    tools: {
      appointment: {
        takesS: 4,
        acts: () => ({ day: 'Thursday', at: 'four', with: 'Dana', euros: 38 }),
      },
    },
    begins: [['appointment', { at: 'Salon Mira', for: 'a haircut' }]],
    lines: [
      {
        says: 'Yes, but on Friday.',
        when: { asked: 'appointment' },
        calls: [settle('change', 'Yes, but on Friday.', { day: 'Friday' })],
        comes: 'read_back_first',
      },
      {
        says: "Four… hmm, yeah, four's fine.",
        when: { asked: 'appointment' },
        calls: [settle('answer', "Four… hmm, yeah, four's fine.")],
      },
      { says: 'Yes.', when: { asked: 'appointment' } },
      {
        says: "Oh, and not Dana, if the other one's there. The, uh, the tall guy.",
        when: { ended: 'appointment' },
        calls: [tell('Not with Dana.', 'haircut')],
        comes: 'completed',
      },
    ],
    tasks: [['appointment', 'completed']],
    done: [{ day: 'Friday', at: 'four', with: 'Dana', euros: 38 }],
    said: [/Thursday, four.*Friday, four/s],
  },
  {
    name: 'not Tuesday, I said Thursday',
    tools: { ride: {}, mail: {} },
    begins: [
      ['ride', { to: 'the clinic', at: 'Tuesday, 9:15' }],
      ['mail', { to: 'the boss', about: 'away on Tuesday' }],
    ],
    lines: [
      {
        says: 'Sorry, did I say Tuesday? I meant Thursday. Thursday at nine fifteen.',
        calls: [
          tell('On Thursday at 9:15, not on Tuesday.', 'ride'),
          tell('Away on Thursday.', 'mail'),
        ],
        comes: 'told',
      },
      {
        says: 'Yeah, both, both. And make it nine. No. Quarter to.',
        calls: [tell('On Thursday at 8:45.', 'ride to the clinic')],
        comes: 'told',
      },
      {
        says: 'And back again around, I dunno, noon-ish?',
        calls: [tell('And back around noon.', 'ride')],
        comes: 'told',
      },
    ],
    tasks: [
      [
        'ride',
        'running',
        'On Thursday at 9:15, not on Tuesday.',
        'On Thursday at 8:45.',
        'And back around noon.',
      ],
      ['mail', 'running', 'Away on Thursday.'],
    ],
  },
  {
    name: 'send it, just not to him',
    tools: {
      mail: {
        takesS: 4,
        // A refusal reaches the task with the user's words, and the task makes another draft.
        acts: (_, __, refused) => ({
          to: refused.length > 0 ? 'Mr. Okafor' : 'Tom and Mr. Okafor',
          price: refused.length > 0 ? 'without the price' : 'with the price',
          dear: 'Mr. Okafor',
        }),
      },
    },
    begins: [['mail', { about: 'the offer for the roof' }]],
    lines: [
      {
        says: "Sounds good, just, um, take out the bit with the price and don't send it to Tom.",
        when: { asked: 'mail' },
      },
      {
        says: 'And "Dear Daniel" instead of— he always says I should call him Daniel.',
        when: { asked: 'mail' },
        calls: [settle('change', 'he always says I should call him Daniel', { dear: 'Daniel' })],
        comes: 'read_back_first',
      },
      {
        says: 'Yep. Yep, off you go.',
        when: { asked: 'mail' },
        calls: [settle('answer', 'Yep, off you go')],
      },
      { says: 'Yes.', when: { afterMs: 8000 }, reply: 'Fine.' },
    ],
    tasks: [['mail', 'completed']],
    done: [{ to: 'Mr. Okafor', price: 'without the price', dear: 'Daniel' }],
    said: [/Mr. Okafor, without the price, Daniel/],
  },
  {
    name: 'write to Anna, in pieces',
    tools: {
      mail: { takesS: 20, acts: ({ request }, told) => ({ text: [request, ...told].join(' ') }) },
    },
    lines: [
      { says: 'Can you write to Anna', calls: [['mail', { request: 'Write to Anna' }]] },
      {
        says: "that I'm, uh, that I'll be half an hour late, because of the train?",
        when: { afterMs: 2800 },
        calls: (hasBegun) =>
          hasBegun
            ? [tell('that I am half an hour late, because of the train')]
            : [
                [
                  'mail',
                  { request: 'Write to Anna that I am half an hour late, because of the train' },
                ],
              ],
        next: ['already_in_progress', tell('that I am half an hour late, because of the train')],
      },
      {
        says: "And sorry, I'm just getting off here. And that they should start without me.",
        calls: [tell('and that they should start without me')],
        comes: 'told',
      },
      { says: 'Yes.', when: { asked: 'mail' } },
    ],
    tasks: [
      [
        'mail',
        'completed',
        'that I am half an hour late, because of the train',
        'and that they should start without me',
      ],
    ],
    done: [
      {
        text: 'Write to Anna that I am half an hour late, because of the train and that they should start without me',
      },
    ],
  },
  {
    name: "don't do anything yet",
    tools: { research: {}, ride: {} },
    begins: [['research', { about: 'campsites at Lake Garda with a pool' }]],
    lines: [
      {
        says: "Okay, listen, don't do anything yet, I'm just thinking out loud. We could take the train to Verona, and then, like, a rental car for the week. Or you book us one of those shuttle things.",
        reply: 'I am listening.',
      },
      {
        says: 'Or, hm. What would a car be, you think, about, for a week?',
        reply: 'Shall I look?',
      },
      {
        says: "Alright, let's do the car, then. Look for one. But only look!",
        calls: [['research', { about: 'a rental car in Verona for a week; look only' }]],
      },
    ],
    tasks: [runs, runs],
  },
  {
    name: 'I need two things',
    tools: { research: {}, table: {} },
    lines: [
      {
        says: "So I need two things. The first is, um, a birthday present for my nephew, he's turning nine, something with space, rockets, whatever, thirty euros max. And the second—",
        calls: [['research', { about: 'a present for a boy of nine, space, at most 30 euros' }]],
      },
      {
        says: "Now I've lost it. Oh! A table. For Sunday, lunch. Somewhere he can run around, too.",
        when: { afterMs: 5000 },
        calls: [['table', { when: 'Sunday, lunch', where: 'good for children' }]],
      },
      {
        says: "Seven of us. No wait, does Oma count… eight. Half twelve. And you can start with that one, the other isn't urgent.",
        calls: [tell('Eight people, half past twelve.', 'table on Sunday')],
        comes: 'told',
      },
    ],
    tasks: [runs, ['table', 'running', 'Eight people, half past twelve.']],
  },
  {
    name: "while that's loading",
    tools: { lookup: { finds: 'There is a train to Ghent at ten past nine.' } },
    begins: [['lookup', { what: 'train connections to Ghent' }]],
    lines: [
      {
        says: "Sure. Hey, while that's loading, what's, um, what's seventeen percent of two hundred and forty?",
        when: { afterMs: 3000 },
        reply: 'Forty point eight.',
      },
      {
        says: "And that's with the tip then, like, two eighty?",
        when: { afterMs: 4000 },
        reply: 'Two hundred eighty point eight.',
      },
    ],
    tasks: [],
    said: [/Forty point eight.*Two hundred eighty.*ten past nine/s],
    unsaid: [/ten past nine.*ten past nine/s],
  },
  {
    name: 'not you',
    tools: {
      lookup: { finds: 'All three pharmacies are open till eight.' },
      table: { takesS: 8, acts: () => ({ place: 'Chez Paul', guests: 2 }) },
    },
    begins: [
      ['lookup', { what: 'opening hours of three pharmacies' }],
      ['table', { day: 'Friday' }],
    ],
    lines: [
      {
        says: 'Did you turn the oven off? No, the oven. Yeah, do that, please.',
        when: { afterMs: 3000 },
        reply: 'Was that for me?',
      },
      {
        says: 'Sorry, not you. Are you still there?',
        when: { afterMs: 2500 },
        reply: 'Yes, still looking.',
      },
      {
        says: 'Oh, and remind me, what was the restaurant called, for Friday?',
        when: { asked: 'table' },
        reply: 'Chez Paul.',
      },
    ],
    tasks: [['table', 'asks']],
    said: [/open till eight/],
  },
  {
    name: 'never mind the bus',
    tools: { lookup: { finds: 'The last bus goes at eleven.' }, report: {} },
    begins: [
      ['lookup', { what: 'the bus to Wivenhoe tonight' }],
      ['report', { about: 'composting' }],
    ],
    lines: [
      {
        says: "It's bloody cold here, honestly. How was your— can you even be cold?",
        when: { afterMs: 3000 },
        reply: 'No, I cannot.',
      },
      {
        says: "You know, actually, never mind the bus. There's Dave. Dave's got his car.",
        when: { afterMs: 4000 },
        calls: [stop('bus to Wivenhoe')],
        comes: 'stopped',
      },
      {
        says: "How much… how long's the, uh, the worm thing gonna be? Pages, I mean.",
        calls: [status('composting report')],
        comes: 'tasks',
      },
    ],
    tasks: [['report', 'running']],
    unsaid: [/at eleven/],
  },
  {
    name: 'a yes to somebody else',
    tools: {
      tickets: { takesS: 4, acts: () => ({ seats: 'two in the balcony', euros: 164 }) },
      research: {},
    },
    begins: [
      ['tickets', { concert: 'Saturday' }],
      ['research', { about: 'allotments in the area' }],
    ],
    lines: [
      {
        says: "Hang on a sec. Yes! Yes, I'm coming! Yes, two minutes!",
        when: { asked: 'tickets' },
        reply: '',
      },
      {
        says: 'Okay, back. What was it?',
        when: { afterMs: 6000 },
        calls: [settle('repeat', 'What was it?')],
      },
      {
        says: 'Sure, whatever it costs? I mean, is that whatever it costs, or is that, like, with fees and stuff?',
        when: { asked: 'tickets' },
        reply: 'I do not know whether the fees are in it.',
      },
      {
        says: 'Nah, then. Too much. Unless they have the cheap ones, the standing.',
        when: { asked: 'tickets' },
        calls: [
          settle(
            'decline',
            'Nah, then. Too much.',
            'Too much. Look for cheap standing tickets, and ask again.',
          ),
        ],
      },
    ],
    tasks: [['tickets', 'completed'], runs],
  },
  {
    name: "go ahead, and don't ask me again for these",
    tools: {
      groceries: { takesS: 4, acts: () => ({ what: 'the weekly order', euros: 61.2 }) },
      mail: { takesS: 60, acts: () => ({ to: 'the tax adviser' }) },
    },
    begins: [
      ['groceries', { week: 'this' }],
      ['mail', { to: 'the tax adviser' }],
    ],
    lines: [
      // The answer is understood more cautiously than the person meant it, so the question is asked again.
      {
        says: "Go ahead, and don't ask me again for these.",
        when: { asked: 'groceries' },
        reply: '',
      },
      { says: 'Yes.', when: { afterMs: 8000 } },
      {
        says: "I just said don't ask me.",
        when: { asked: 'mail' },
        reply: 'That was for the groceries.',
      },
      { says: 'Fine, fine. Read it.', when: { asked: 'mail' }, reply: 'Dear adviser.' },
    ],
    tasks: [
      ['groceries', 'completed'],
      ['mail', 'asks'],
    ],
    done: [{ what: 'the weekly order', euros: 61.2 }],
  },
  {
    name: 'which one was that yes for',
    tools: {
      plumber: { takesS: 4, acts: () => ({ at: 'Wednesday at eight', euros: 90 }) },
      mail: { takesS: 4, acts: () => ({ to: 'the neighbour' }) },
    },
    begins: [
      ['plumber', { day: 'Wednesday' }],
      ['mail', { about: 'the water' }],
    ],
    lines: [
      { says: 'Yeah, okay.', when: { asked: 'plumber' }, reply: '' },
      {
        says: "The mail, yeah. The other one… I guess? I don't know. Eight's awfully early.",
        when: { afterMs: 9000 },
        reply: 'Then I leave the plumber open.',
      },
    ],
    tasks: [
      ['plumber', 'asks'],
      ['mail', 'asks'],
    ],
  },
  {
    name: "too late, it's gone",
    tools: { mail: { takesS: 4 }, research: {} },
    begins: [
      ['mail', { to: 'Mrs. Petrov', about: 'the date' }],
      ['research', { about: 'used pianos' }],
    ],
    lines: [
      {
        says: 'Oh no, wait, wait, stop the mail, I got the date wrong.',
        when: { ended: 'mail' },
        calls: [stop('mail to Mrs. Petrov')],
        comes: 'completed',
      },
      {
        says: "Ugh. Okay. It's the nineteenth, not the ninth. Can you, like, take it back?",
        reply: 'It cannot be taken back. Shall I send a correction?',
      },
    ],
    tasks: [['mail', 'completed'], runs],
    unsaid: [/I've stopped/],
  },
  {
    name: "how's the visa thing",
    tools: { research: {} },
    begins: [['research', { about: 'vaccinations for Vietnam' }]],
    lines: [
      { says: "How's the visa thing coming along?", calls: [status('visa')], comes: 'tasks' },
      { says: "I could've sworn I— didn't I tell you yesterday?", reply: 'I have no such task.' },
      {
        says: "Well, then do it now. Tourist one, and just find out, don't apply or anything.",
        calls: [['research', { about: 'a tourist visa, to find out only' }]],
      },
      { says: 'And stop the hotel.', calls: [stop('hotel')], comes: 'unclear' },
    ],
    tasks: [runs, runs],
    unsaid: [/I've stopped/],
  },
  {
    name: 'make it two',
    tools: { order: { takesS: 4 }, table: { takesS: 4 } },
    begins: [
      ['order', { what: 'a rain jacket, M, blue' }],
      ['table', { day: 'Saturday', guests: 'three' }],
    ],
    lines: [
      {
        says: 'Great. Make it two, and, uh, one of them in L.',
        when: { ended: 'table' },
        reply: 'A new order, blue?',
      },
      { says: 'Blue, yeah. For Sunday.', reply: 'The jacket by Sunday, or the table?' },
      {
        says: 'No, no, the table. The jacket, whenever.',
        calls: [
          ['table', { day: 'Sunday', guests: 'three' }],
          ['order', { what: 'a rain jacket, L, blue' }],
        ],
      },
      {
        says: 'Has the, um, has the first one shipped, actually?',
        calls: [status('rain jacket M')],
        comes: 'tasks',
      },
    ],
    tasks: [
      ['order', 'completed'],
      ['table', 'completed'],
      ['table', 'completed'],
      ['order', 'completed'],
    ],
  },
];
