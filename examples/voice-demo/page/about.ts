// The description of the running demo for the page and the terminal: its models, and things to try.

/** A thing to try: the user says or types `say`, or presses the button `press`. */
export interface Suggestion {
  readonly title: string;
  readonly hint: string;
  readonly say?: string;
  /** Suggestions for what the user can say next, while the work runs or asks. */
  readonly next?: readonly string[];
  readonly press?: string;
}

/** The models behind the page, as text, and the fields that `GET /about` adds. */
export interface About {
  /** A value of the environment variable `TRANSPORT`. */
  readonly transport: string;
  /** The model of the lead agent. */
  readonly lead: string;
  readonly subagents: string;
  readonly speech: string;
  /** Whether `POST /crash` kills the server. */
  readonly canCrash?: boolean;
}

export const suggestions: readonly Suggestion[] = [
  {
    title: 'A report',
    say: 'Make me a sales report for last week.',
    hint: 'It takes a while. Go on chatting: you are told when it is ready. Meanwhile, say:',
    next: [
      'How is the report going?',
      'Also include the third quarter.',
      'Not last week, last month.',
      'Stop the report.',
    ],
  },
  {
    title: 'A ride',
    say: 'Book me a ride to the airport.',
    hint: 'It asks which one. Say it, type it, or press the button.',
  },
  {
    title: 'Two at once',
    say: 'Book me a ride to the airport and a table for two.',
    hint: 'Both will ask you. The first to ask is the first to be answered. Or say:',
    next: ['Stop the table.', 'What are you working on?', 'Cancel everything.'],
  },
  {
    title: 'A refund',
    say: 'Please refund my last order.',
    hint: 'It asks whether it may, and shows what it would do. Say yes, no, press “Approve for this conversation”, or say:',
    next: ['Yes, but only two hundred dollars.'],
  },
  {
    title: 'Not yet',
    say: "Don't book anything yet. I need a ride to the airport.",
    hint: 'Nothing begins. Then say:',
    next: ['Okay, go ahead.'],
  },
  {
    title: 'An agent of somebody else',
    say: 'Put soup on the menu.',
    hint: 'It runs beside the demo, over ACP, and changes a file when you say yes.',
  },
  {
    title: 'Something urgent',
    press: 'An order is out for delivery',
    hint: 'A shop says so, while you are being talked to.',
  },
];
