// Dialogues about running work: names that sound alike, two requests in one sentence, and changes that are taken back.

import { settle, status, stop, tell, type Steered } from './steered.ts';

const report = (about: string) => ['report', { about }] as const;
const mailTo = (to: string) => ['mail', { to, about: 'the meeting' }] as const;

/** A task that books after the user has approved. */
const booking = (input: object) => ({ takesS: 4, acts: () => input });
const thursday = { day: 'Thursday', seats: 'two' };
const friday = { ...thursday, day: 'Friday' };

export const own: readonly Steered[] = [
  {
    name: 'what are you doing anyway',
    tools: { report: {}, research: {} },
    begins: [report('solar sales'), ['research', { about: 'insulation' }]],
    lines: [
      { says: 'What are you doing right now, anyway?', calls: [status()], comes: 'tasks' },
      {
        says: 'Any news on the, what was it, the insulation?',
        calls: [status('insulation')],
        comes: 'tasks',
      },
    ],
    tasks: [
      ['report', 'running'],
      ['research', 'running'],
    ],
    said: [/solar.*insulation/s],
  },
  {
    name: 'the Lyon one, not the Leon one',
    tools: { research: {} },
    begins: [
      ['research', { about: 'hotels in Lyon' }],
      ['research', { about: 'hotels in Leon' }],
    ],
    lines: [
      { says: 'Stop the hotels.', calls: [stop('hotels')], comes: 'unclear' },
      { says: 'The, um, the one in Lyon.', calls: [stop('hotels in Lyon')], comes: 'stopped' },
    ],
    tasks: [
      ['research', 'cancelled'],
      ['research', 'running'],
    ],
  },
  {
    name: "don't write to Hanna after all",
    tools: { mail: {} },
    begins: [mailTo('Anna'), mailTo('Hanna')],
    lines: [
      {
        says: "Uh, don't write to Hanna after all.",
        calls: [stop('mail to Hanna')],
        comes: 'stopped',
      },
      { says: 'And Anna?', calls: [status('mail to Anna')], comes: 'tasks' },
    ],
    tasks: [
      ['mail', 'running'],
      ['mail', 'cancelled'],
    ],
  },
  {
    name: 'oh no wait, cancel that',
    tools: { report: {} },
    begins: [report('solar sales')],
    lines: [
      { says: 'Oh no, wait. Cancel that.', calls: [stop('solar sales report')], comes: 'stopped' },
    ],
    tasks: [['report', 'cancelled']],
  },
  {
    name: 'forget it, all of it',
    tools: { report: {}, ride: {} },
    begins: [report('solar sales'), ['ride', { to: 'the airport' }]],
    lines: [
      {
        says: 'You know what? Forget it. All of it.',
        calls: [stop('report'), stop('ride')],
        comes: 'stopped',
      },
      { says: 'What is still running?', calls: [status()], comes: 'undefined' },
    ],
    tasks: [
      ['report', 'cancelled'],
      ['ride', 'cancelled'],
    ],
  },
  {
    name: 'cancel the table, and tell the driver',
    tools: { table: {}, ride: {} },
    begins: [
      ['table', { at: 'Luigi' }],
      ['ride', { to: 'the airport' }],
    ],
    lines: [
      {
        says: 'Cancel the table, and, uh, tell the driver to wait at the back.',
        calls: [stop('table'), tell('Wait at the back.', 'ride')],
        comes: 'told',
      },
    ],
    tasks: [
      ['table', 'cancelled'],
      ['ride', 'running', 'Wait at the back.'],
    ],
  },
  {
    name: 'stop it, a second too late',
    tools: { report: { takesS: 4 } },
    begins: [report('solar sales')],
    lines: [
      {
        says: 'Stop the report.',
        when: { ended: 'report' },
        calls: [stop('report')],
        comes: 'completed',
      },
      {
        says: 'And put the wind farms in.',
        calls: [tell('With the wind farms.', 'report')],
        comes: 'completed',
      },
    ],
    tasks: [['report', 'completed']],
    unsaid: [/I've stopped/],
  },
  {
    name: 'copy Bob, no, Rob',
    tools: { mail: {} },
    begins: [mailTo('Anna')],
    lines: [
      { says: 'And copy Bob.', calls: [tell('Copy Bob.')], comes: 'told' },
      { says: 'No, not Bob, Rob.', calls: [tell('Copy Rob, not Bob.')], comes: 'told' },
      {
        says: 'Not Bob. Rob.',
        when: { afterMs: 1500 },
        calls: [tell('Copy Rob, not Bob.')],
        comes: 'told_before',
      },
    ],
    tasks: [['mail', 'running', 'Copy Bob.', 'Copy Rob, not Bob.']],
  },
  {
    name: 'not on Thursday, on Friday',
    tools: { appointment: {} },
    begins: [['appointment', { with: 'the dentist', day: 'Thursday' }]],
    lines: [
      {
        says: 'Not on Thursday, on Friday.',
        calls: [tell('On Friday, not on Thursday.')],
        comes: 'told',
      },
      { says: 'Did you get that?', calls: [status('dentist')], comes: 'tasks' },
    ],
    tasks: [['appointment', 'running', 'On Friday, not on Thursday.']],
  },
  {
    name: 'make it Friday, and then okay is no yes',
    tools: { table: booking(thursday) },
    begins: [['table', { at: 'Luigi' }]],
    lines: [
      {
        says: 'Yes, but make it Friday.',
        when: { asked: 'table' },
        calls: [settle('change', 'Yes, but make it Friday.', { day: 'Friday' })],
        comes: 'read_back_first',
      },
      { says: 'Hm, and how much is that?', when: { asked: 'table' }, reply: 'I do not know.' },
    ],
    tasks: [['table', 'asks']],
  },
  {
    name: 'no, on Friday instead, yes',
    tools: { table: booking(thursday) },
    begins: [['table', { at: 'Luigi' }]],
    lines: [
      {
        says: 'Yes, but on Friday instead.',
        when: { asked: 'table' },
        calls: [settle('change', 'Yes, but on Friday instead.', { day: 'Friday' })],
        comes: 'read_back_first',
      },
      { says: 'Yes, please.', when: { asked: 'table' } },
    ],
    tasks: [['table', 'completed']],
    done: [friday],
  },
  {
    name: 'on Friday, no, leave it on Thursday',
    tools: { table: booking(thursday) },
    begins: [['table', { at: 'Luigi' }]],
    lines: [
      {
        says: 'Yes, but on Friday.',
        when: { asked: 'table' },
        calls: [settle('change', 'Yes, but on Friday.', { day: 'Friday' })],
        comes: 'read_back_first',
      },
      { says: 'No.', when: { asked: 'table' } },
      { says: 'Yes.', when: { asked: 'table' } },
    ],
    tasks: [['table', 'completed']],
    done: [thursday],
    // The yes is for the call that was heard last.
    said: [/Thursday.*Friday.*To be sure: May I do this table: Thursday/s],
  },
  {
    name: 'on Friday, no, on Saturday',
    tools: { table: booking(thursday) },
    begins: [['table', { at: 'Luigi' }]],
    lines: [
      {
        says: 'Yes, but on Friday.',
        when: { asked: 'table' },
        calls: [settle('change', 'Yes, but on Friday.', { day: 'Friday' })],
        comes: 'read_back_first',
      },
      {
        says: 'Sorry, I mean on Saturday.',
        when: { asked: 'table' },
        calls: [settle('change', 'Sorry, I mean on Saturday.', { day: 'Saturday' })],
        comes: 'read_back_first',
      },
      { says: 'Yes.', when: { asked: 'table' } },
    ],
    tasks: [['table', 'completed']],
    done: [{ ...thursday, day: 'Saturday' }],
    said: [/May I do this table: Friday.*May I do this table: Saturday/s],
  },
  {
    name: 'how much was it again, okay, yes',
    tools: { tickets: booking({ seats: 'balcony', euros: 164 }) },
    begins: [['tickets', { for: 'Saturday' }]],
    lines: [
      {
        says: 'Hmm. How much was it again?',
        when: { asked: 'tickets' },
        calls: [settle('repeat', 'How much was it again?')],
      },
      { says: 'Yes.', when: { asked: 'tickets' } },
    ],
    tasks: [['tickets', 'completed']],
    done: [{ seats: 'balcony', euros: 164 }],
  },
  {
    name: 'yes, what is the weather',
    tools: { tickets: booking({ seats: 'balcony', euros: 164 }) },
    begins: [['tickets', { for: 'Saturday' }]],
    lines: [
      {
        says: 'Yes, what is the weather like on Saturday?',
        when: { asked: 'tickets' },
        reply: 'I cannot tell.',
      },
    ],
    tasks: [['tickets', 'asks']],
  },
  {
    name: 'nah, leave it',
    tools: { tickets: booking({ seats: 'balcony', euros: 164 }), report: {} },
    begins: [['tickets', { for: 'Saturday' }], report('solar sales')],
    lines: [{ says: 'Nah, leave it.', when: { asked: 'tickets' } }],
    tasks: [
      ['tickets', 'completed'],
      ['report', 'running'],
    ],
  },
  {
    name: 'write to Anna, in three pieces',
    tools: { mail: {} },
    lines: [
      { says: 'Write to Anna', calls: [['mail', { request: 'Write to Anna' }]] },
      {
        says: "that I'm late",
        when: { afterMs: 2000 },
        calls: (hasBegun) =>
          hasBegun
            ? [tell("that I'm late")]
            : [['mail', { request: "Write to Anna that I'm late" }]],
        next: ['already_in_progress', tell("that I'm late")],
      },
      {
        says: 'and copy Bob',
        when: { afterMs: 2500 },
        calls: [tell('and copy Bob')],
        comes: 'told',
      },
    ],
    tasks: [['mail', 'running', "that I'm late", 'and copy Bob']],
  },
  {
    name: "don't start yet, and then go",
    tools: { report: {} },
    lines: [
      { says: "I need a report on solar sales, but don't start it yet.", reply: 'I wait.' },
      { says: 'Okay, now you can.', calls: [report('solar sales')] },
    ],
    tasks: [['report', 'running']],
  },
  {
    name: 'never mind the stock',
    tools: { lookup: { finds: 'There are nine left.' } },
    begins: [['lookup', { what: 'the stock of desks' }]],
    lines: [
      { says: 'And how are you today?', when: { afterMs: 3000 }, reply: 'Fine.' },
      {
        says: 'Never mind the stock.',
        when: { afterMs: 3000 },
        calls: [stop('stock')],
        comes: 'stopped',
      },
    ],
    tasks: [],
    unsaid: [/nine left/],
  },
];
