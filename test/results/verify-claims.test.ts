import { describe, expect, test } from 'vitest';
import { isUnfinished } from '../../src/results/verify-claims.ts';
import { effectsOf, verifyClaims, type DeclaredEffects } from '../../src/results/verify-claims.ts';
import type { LedgerEntry } from '../../src/actors/contracts/outcome.ts';

type Done = string | [toolName: string, output: unknown, status?: LedgerEntry['status']];

function ledger(...done: Done[]): LedgerEntry[] {
  return done.map((call, index) => {
    const [toolName, output, status = 'ok'] = typeof call === 'string' ? [call, 'done'] : call;
    return { step: 1, callId: `c${index}`, toolName, input: {}, status, output };
  });
}

const verify = (text: string, done: Done[] = [], effects?: DeclaredEffects) =>
  verifyClaims({ text, toolLedger: ledger(...done) }, effects);

describe('claims without a call', { tags: ['R27', 'RW13'] }, () => {
  test.each([
    'I sent the email to Anna.',
    "I've booked the flight to Lisbon for 120 euros.",
    'I have successfully saved the report.',
    'Everything is fine. We also notified the team.',
    'I found three flights and booked the cheapest one.',
    'I looked it up and then emailed them.',
    'Booked the 9:15 flight. It leaves from gate 4.',
    'Done! Sent the invoice to the customer.',
    'Your table has been reserved for eight.',
    'The message was successfully sent to your boss.',
    'I created a reminder for Monday.',
    'I cancelled your subscription.',
    '**Status:** I deleted the old records.',
    'Summary: I submitted the form as asked.',
    'I paid the invoice.',
  ])('%s', (text) => {
    expect(verify(text)).toMatchObject({
      verified: false,
      unverified: [{ reason: 'no_call' }],
      incomplete: false,
    });
  });

  test('remain unverified after a call that only reads', () => {
    const { unverified } = verify('All good. I sent the email to Anna.', [
      'get_contacts',
      'search_mail',
      'email_status',
    ]);
    expect(unverified).toEqual([{ claim: 'I sent the email to Anna.', reason: 'no_call' }]);
  });

  test("remain unverified after an unrelated call or a call to one of the runtime's own tools", () => {
    expect(verify('I sent the email.', ['save_note']).verified).toBe(false);
    expect(verify('I booked it.', ['save_note', 'send_mail']).verified).toBe(false);
    expect(verify('I sent the email.', ['complete_task', 'report_progress']).verified).toBe(false);
  });

  test.each<[Done]>([
    [['send_email', 'HTTP 401 Unauthorized']],
    [['send_email', 'Error: no such address']],
    [['send_email', { error: { code: 'DENIED' } }]],
    [['send_email', { success: false }]],
    [['send_email', { sent: false }]],
    [['send_email', { status: 'failed' }]],
    [['send_email', { isError: true, content: [] }]],
    [['send_email', false]],
    [['send_email', 'boom', 'error']],
    [['send_email', 'No', 'denied']],
    [['send_email', null, 'not_run']],
  ])('VERIFY-CLAIMS-3: %j has sent nothing', (done) => {
    expect(verify('I sent the email.', [done]).unverified).toEqual([
      { claim: 'I sent the email.', reason: 'failed', toolName: 'send_email' },
    ]);
  });

  test('require one check each and are all listed', () => {
    const { claims, unverified, verified } = verify(
      'I booked the flight. I emailed the itinerary to you.',
      ['book_flight'],
    );
    expect(claims).toEqual(['I booked the flight.', 'I emailed the itinerary to you.']);
    expect(unverified).toEqual([{ claim: 'I emailed the itinerary to you.', reason: 'no_call' }]);
    expect(verified).toBe(false);
  });
});

describe('claims with a call', { tags: ['R27'] }, () => {
  test.each<[string, Done[]]>([
    ['I sent the email.', ['send_email']],
    ['I sent the email.', ['sendEmail']],
    ['I sent the email.', ['gmail.send']],
    ['I sent the email.', [['send_email', 'x', 'error'], 'send_email']],
    ['I notified Anna.', ['send_message']],
    ['I booked the flight.', ['create_booking']],
    ['I booked the flight.', ['reserveSeat']],
    ['I booked the event.', ['add_event']],
    ['I scheduled the meeting.', ['create_event']],
    ['I saved the report.', ['write_file']],
    ['I saved the report.', ['save_to_working_memory']],
    ['I deleted the file.', ['remove_file']],
    ['I cancelled your order.', ['update_order']],
    ['I sent the invoice.', ['create_invoice']],
    ['I paid the invoice.', ['transfer_money']],
  ])('VERIFY-CLAIMS-2: %s %j', (text, done) => {
    expect(verify(text, done)).toMatchObject({ verified: true, unverified: [] });
    expect(verify(text, done).claims).toHaveLength(1);
  });

  test.each([
    'run_command',
    'http_post',
    'browser',
    'mcp_tool',
    'gmail',
    'zapier',
    'spawn_subagent',
  ])('VERIFY-CLAIMS-2: count as verified after a call of %s, which can do anything', (toolName) => {
    expect(verify('I sent the email.', [toolName]).verified).toBe(true);
  });

  test("follow a declared effect rather than the tool's name", () => {
    const effects = effectsOf({
      notify: { effects: ['email.sent'] },
      send: { effects: [] },
      zapier: { effects: ['crm.synced'] },
      other: {},
    });
    expect(effects).toEqual({ notify: ['email.sent'], send: [], zapier: ['crm.synced'] });
    expect(verify('I sent the email.', ['notify'], effects).verified).toBe(true);
    expect(verify('I booked the flight.', ['notify'], effects).verified).toBe(false);
    expect(verify('I sent the email.', ['send'], effects).verified).toBe(false);
    expect(verify('I sent the email.', ['zapier'], effects).verified).toBe(false);
    expect(verify('I updated the CRM record.', ['zapier'], effects).verified).toBe(true);
  });
});

describe('FIND-CLAIMS-1: do not include mere descriptions', { tags: ['R27'] }, () => {
  test.each([
    'The company sent three emails last week.',
    'The order was shipped on Monday and has been delivered.',
    'The meeting has been scheduled for Friday, says the calendar.',
    'Created in 2019, the fund has booked losses ever since.',
    'He said he had sent the report, and they booked a room.',
    'Anna: I sent the file yesterday.',
    'The log says "I have sent the email" and nothing else.',
    '> I booked the flight.\n\nThat is what the mail says.',
    'Run this:\n```\nI saved the file.\n```\nand `I sent it` appears.',
    'Here is the draft:\n\nDear Anna,\n\nI have sent the contract to your office. I booked a room.\n\nBest regards,\nTom',
    'I have not sent the email.',
    "I didn't book anything.",
    'I could not have sent it.',
    'If I sent the mail now, nobody would read it.',
    'I would have booked the earlier train.',
    'Shall I say that I sent it?',
    'Should I book it? I can send it when you agree.',
    'I will send the email once you confirm.',
    'I created a summary of the three articles.',
    'I added up the numbers: 42.',
    'I updated the comparison with the new prices.',
    'I ordered the list by price.',
    'I removed duplicates from the results.',
    'I saved you 20 euros with the later flight.',
    'I saved 20% by choosing the train.',
    'I sent nothing.',
    'I found a train that leaves at nine and a flight.',
    'I checked the order that Anna placed and paid the day before.',
    'Recent changes:\n- Updated the file format\n- Saved the settings\n- Sent the newsletter',
    'Sent items: 5. Booked flights: 2.',
    'Saved searches are in the menu.',
    'Ich habe die E-Mail gesendet.',
    'Flight TP 533, 120 EUR, 9:15.',
    '',
  ])('%j', (text) => {
    expect(verify(text)).toEqual({ verified: true, claims: [], unverified: [], incomplete: false });
  });

  test("match an effect that a tool's result confirms", () => {
    const text = 'Your order has been cancelled.';
    expect(verify(text, ['get_order']).claims).toEqual([]);
    expect(verify(text).unverified).toHaveLength(1);
  });

  test('include at most ten claims from a huge report, which is processed quickly', () => {
    const { claims } = verify('I sent the email. '.repeat(50_000));
    expect(claims).toHaveLength(10);
    expect(verify(`I found ${'a and '.repeat(5000)}`).claims).toEqual([]);
    expect(verify('I found and '.repeat(2000)).claims).toEqual([]);
    expect(verify('hi\n'.repeat(9000)).claims).toEqual([]);
  });
});

describe('reports that announce work instead of doing it', { tags: ['R33', 'RW13'] }, () => {
  test.each([
    'I found three flights.\n\nNow let me save the results.',
    'Now let me save these findings to working memory:',
    "I'll now search for hotels",
    'Great, next I will compile the report…',
    'Two of them fit. Let me check the third one.',
    'OK. I need to fetch the second page.',
    'First, let me look up the prices.',
    "Let's start by reading the file.",
    '**Next, I am going to write the summary.**',
  ])('%j', (text) => {
    expect(isUnfinished(text)).toBe(true);
    expect(verify(text)).toMatchObject({ verified: false, incomplete: true });
  });

  test.each([
    'Let me save the results. Saved: three flights.',
    'Let me know if you want more.',
    "I'll be happy to help further.",
    "I'll send it once you confirm.",
    'I will book it if you agree.',
    'Shall I book it?',
    'The guide says "now let me save".',
    'The flight leaves at nine. You will get a mail.',
    'I would start by asking Anna.',
    'They say: we will update the app in May.',
    '',
  ])('count as finished: %j', (text) => {
    expect(isUnfinished(text)).toBe(false);
  });
});
