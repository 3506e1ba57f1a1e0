import { describe, expect, test } from 'vitest';
import type { Request } from '../../../../examples/voice-demo/rules/clause.ts';
import { understand, type Slot } from '../../../../examples/voice-demo/rules/requests.ts';

const ride = (destination: string | null): Request => ({ type: 'ride', destination });
const table = (partySize: number | null): Request => ({ type: 'table', partySize });
const report = (dateRange: string | null): Request => ({ type: 'report', dateRange });
const order = (orderId: string | null): Request => ({ type: 'order', orderId });
const cancel = (work: Extract<Request, { type: 'cancel' }>['work']): Request => ({
  type: 'cancel',
  work,
});
const chat = (topic: Extract<Request, { type: 'chat' }>['topic']): Request => ({
  type: 'chat',
  topic,
});
const cannot = (wish: string): Request => ({ type: 'unsupported', wish });
const progress = (work: Extract<Request, { type: 'progress' }>['work']): Request => ({
  type: 'progress',
  work,
});
const told = (work: Extract<Request, { type: 'tell' }>['work'], words: string): Request => ({
  type: 'tell',
  work,
  words,
});
const unknown: Request = { type: 'unknown' };

describe('utterances', () => {
  test.each<[string, ...Request[]]>([
    ['Book me a ride to the airport.', ride('the airport')],
    ['I need to get to the station please', ride('the station')],
    ['Take me to the museum, please.', ride('the museum')],
    ['Get me a cab to 12 Main Street tomorrow', ride('12 main street')],
    ['I would like to order a taxi to the bed and breakfast', ride('the bed and breakfast')],
    ['a ride to the hotel', ride('the hotel')],
    ['Can you get me a taxi?', ride(null)],
    ['Book me a ride. To the airport.', ride('the airport')],
    ['Could you reserve a table for four at eight', table(4)],
    ['Book a table at seven thirty four four.', table(4)],
    ['I want to book a table', table(null)],
    ['generate a sales report for the fourth quarter', report('the fourth quarter')],
    ['a report please', report(null)],
    ['where is my order', order(null)],
    ['order number 1042', order('1042')],
    ['please refund my last order', { type: 'refund', orderId: null }],
    ['a refund for order ten forty two', { type: 'refund', orderId: '1042' }],
    ['I want my money back', { type: 'refund', orderId: null }],
    ['cancel the refund', { type: 'cancel', work: 'refund' }],
    ['put soup on the menu', { type: 'menu', task: 'Put soup on the menu.' }],
    ['Put mac and cheese on the menu.', { type: 'menu', task: 'Put mac and cheese on the menu.' }],
    ["What's on the menu?", { type: 'menu', task: "What's on the menu?" }],
    ['forget the menu', cancel('menu')],
    ['order ten forty two', order('1042')],
    ['what about the order 1041', order('1041')],
    ['how is it going', progress('unclear')],
    ["How's my ride coming along?", progress('ride')],
    ['Is the report ready yet?', progress('report')],
    ['Also include the third quarter.', told('report', 'Also include the third quarter.')],
    ['Oh, and put last month in as well', told('report', 'Put last month in as well.')],
    ['Not last week, last month.', told('report', 'Not last week, last month.')],
    ['Make it last month', told('report', 'Make it last month.')],
    ['We are five, actually', told('table', 'We are five, actually.')],
    ['Not to the airport, to the station', told('ride', 'Not to the airport, to the station.')],
    ["Don't do anything yet", { type: 'wait' }],
    ["Don't book it just yet. A ride to the airport.", { type: 'wait' }],
    ["Forget the taxi, I don't need it", cancel('ride')],
    ['I no longer need the table', cancel('table')],
    ['cancel the ride', cancel('ride')],
    ['stop the report', cancel('report')],
    ['cancel everything', cancel('everything')],
    ['cancel', cancel('unclear')],
    ['stop', chat('quiet')],
    ['never mind', chat('nevermind')],
    ['Hello', chat('greeting')],
    ['Good morning! How are you?', chat('wellbeing')],
    ['thank you very much', chat('thanks')],
    ['what can you do', chat('help')],
    ['who are you', chat('name')],
    ['tell me a joke', chat('joke')],
    ['goodbye', chat('goodbye')],
    ["what's the weather like", cannot('check the weather')],
    ['play some music', cannot('play music')],
    ['book me a flight to paris', cannot('book flights')],
    ['order me a pizza', cannot('order food')],
    ['Can you paint the fence', cannot('do that')],
    ['Can you book me and ride to the airport', ride('the airport')],
    ['uh', unknown],
    ['the capital of france', unknown],
  ])('%s', (utterance, ...requests) => {
    expect(understand(utterance)).toEqual(requests);
  });
});

describe('yield both requests if one sentence contains two', () => {
  test.each<[string, ...Request[]]>([
    [
      'book a ride to the airport and a sales report for last week',
      ride('the airport'),
      report('last week'),
    ],
    ['Book a ride to the airport and a table for two.', ride('the airport'), table(2)],
    [
      'Book me a ride to the airport and another one to the station',
      ride('the airport'),
      ride('the station'),
    ],
    [
      'Make a report for the last seven days, and book a table for two.',
      report('the last seven days'),
      table(2),
    ],
    ['Book me a ride, and make me a report for yesterday', ride(null), report('yesterday')],
    ['Hi there, book a ride to the office', ride('the office')],
  ])('%s', (utterance, ...requests) => {
    expect(understand(utterance)).toEqual(requests);
  });
});

// On the left is what a recogniser actually transcribed for the sentence on the right.
describe('yield the request despite recognition errors', () => {
  test.each<[string, string, ...Request[]]>([
    ['But me and I to the airport,', 'Book me a ride to the airport', ride('the airport')],
    ['But me a right to the air port', 'Book me a ride to the airport', ride('the airport')],
    [
      'But me arrived to the airport in the table for two.',
      'Book me a ride to the airport and a table for two',
      ride('the airport'),
      table(2),
    ],
    [
      'But cried to the museum and make a report for last month.',
      'Book a ride to the museum and make a report for last month',
      ride('the museum'),
      report('last month'),
    ],
    ['Look me in right.', 'Book me a ride', ride(null)],
    ['Put me ever Ide.', 'Book me a ride', ride(null)],
    ['Were reserved a table for four people.', 'Reserve a table for four people', table(4)],
    ['I need a table for to', 'I need a table for two', table(2)],
    ["Can't solve your ride.", 'Cancel the ride', cancel('ride')],
    ['Cancelled the ride.', 'Cancel the ride', cancel('ride')],
    [
      'Generate a sails rapport for last weak',
      'Generate a sales report for last week',
      report('last week'),
    ],
    ['And do very much.', 'Thank you very much', chat('thanks')],
    ['Hello, tell her you.', 'Hello, how are you?', chat('greeting')],
    // The recogniser heard a television first.
    [
      'To give them. But me, a ride to the airport, please.',
      'Book me a ride to the airport, please',
      ride('the airport'),
    ],
    [
      'Four, three people, could you find us a table?',
      'For three people, could you find us a table?',
      table(3),
    ],
    ['Four people, a table please.', 'Four people, a table please', table(4)],
    ['I have to. A table for four.', 'A table for four', table(4)],
    ['I want to go. To the airport.', 'I want to go to the airport', ride('the airport')],
    ['Tell me, a joke,', 'Tell me a joke', { type: 'chat', topic: 'joke' }],
    ['Cancel, the ride,', 'Cancel the ride', { type: 'cancel', work: 'ride' }],
    [
      'Cancel that, and book me a table',
      'Cancel that, and book me a table',
      { type: 'cancel', work: 'unclear' },
      table(null),
    ],
  ])('%s (%s)', (heard, _said, ...requests) => {
    expect(understand(heard)).toEqual(requests);
  });
});

describe('yield the detail that was asked for', () => {
  test.each<[Slot, string, ...Request[]]>([
    ['destination', 'the airport', ride('the airport')],
    ['destination', "I'd like to go to the train station", ride('the train station')],
    ['destination', 'To grandmother, please', ride('grandmother')],
    ['destination', 'what can you do', chat('help')],
    ['destination', 'never mind', chat('nevermind')],
    ['destination', 'make a report for today', report('today')],
    ['destination', 'how should I know', unknown],
    ['destination', 'um', unknown],
    ['partySize', 'two', table(2)],
    ['partySize', 'For.', table(4)],
    ['partySize', 'just me', table(1)],
    ['partySize', 'many', unknown],
    ['dateRange', 'the third quarter please', report('the third quarter')],
    ['dateRange', 'whenever', unknown],
    ['work', 'the ride', cancel('ride')],
    ['work', 'both', cancel('everything')],
  ])('%s: %s', (slot, utterance, ...requests) => {
    expect(understand(utterance, slot)).toEqual(requests);
  });

  test('yield a ride if only a place is given, provided that the place is well known', () => {
    expect(understand('grandmother')).toEqual([unknown]);
    expect(understand('to the airport, please')).toEqual([ride('the airport')]);
  });
});
