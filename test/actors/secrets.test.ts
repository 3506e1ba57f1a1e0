// SHAPES-1: credentials of the usual forms are taken out wherever they stand; what people say is left.

import { describe, expect, test } from 'vitest';
import { endsAsSecret, secretRemover } from '../../src/actors/secrets.ts';
import { redactKey, redactWords } from '../../src/adapters/inspect/redact.ts';
import { shown } from '../../src/checks.ts';
import { memoryJournal, redactingJournal } from '../../src/index.ts';

const takeOut = secretRemover([]);
const letters = (length: number): string => 'aB3dE5gH7jK9mN2pQ4sT6vW8yZ'.repeat(3).slice(0, length);

/** Put together here, so that nobody takes them for real ones. */
const CREDENTIALS: Readonly<Record<string, string>> = {
  'OpenAI, ephemeral': `ek_${letters(24)}`,
  'OpenAI, project': `sk-proj-${letters(24)}`,
  Google: `AIza${letters(35)}`,
  'Google, ephemeral': `auth_tokens/${letters(24)}`,
  GitHub: `ghp_${letters(36)}`,
  AWS: `AKIA${letters(16).toUpperCase()}`,
  Stripe: `sk_live_${letters(24)}`,
  Slack: `xoxb-${'1'.repeat(11)}-${letters(20)}`,
  Groq: `gsk_${letters(40)}`,
  xAI: `xai-${letters(40)}`,
  webhook: `whsec_${letters(32)}`,
  JWT: `eyJ${letters(20)}.${letters(30)}.${letters(30)}`,
};

const positions: Readonly<Record<string, (secret: string) => unknown>> = {
  alone: (secret) => secret,
  'in a sentence': (secret) => `my key is ${secret}, please use it`,
  'in a URL': (secret) => `https://example.com/?x=1&token=${secret}#there`,
  'in a header': (secret) => ({ headers: [`Authorization: Bearer ${secret}`] }),
  'in JSON within a text': (secret) => JSON.stringify({ a: JSON.stringify({ b: secret }) }),
  'as a key': (secret) => ({ table: { [secret]: 1 } }),
  deep: (secret) => [[{ list: [null, { value: secret }] }]],
};

describe.each(Object.entries(CREDENTIALS))('%s', (_, secret) => {
  test.each(Object.entries(positions))('%s', (__, put) => {
    const inner = memoryJournal();
    const event = { type: 'user.said', value: put(secret) };
    const entry = { scope: 's', unit: 'u', seq: 1, at: 1, actor: 'a', definitionVersion: 1, event };
    void redactingJournal(inner).append(entry);
    const kept = JSON.stringify(inner.read());
    expect(kept).toContain('[redacted]');
    expect(kept).not.toContain(secret.slice(-12));
  });
});

test.each([
  'pwd',
  'x-api-key',
  'X_API_KEY',
  'openaiApiKey',
  'OPENAI_API_KEY',
  'sessionToken',
  'session-token',
  'dbPassword',
  'DB_PASSWORD',
  'clientSecret',
  'awsSecretAccessKey',
  'openaiapikey',
  'webhookSecret',
])('the name %s is that of a credential', (name) => {
  expect(endsAsSecret(name)).toBe(true);
});

test.each([
  'tokens',
  'inputTokens',
  'maxTokens',
  'secretary',
  'passwordless',
  'key',
  'keyboard',
  'monkey',
  'compass',
  'passenger',
  'tokenCount',
  'callId',
  'idempotencyKey',
  'sortKey',
  'turnkey',
])('the name %s is not', (name) => {
  expect(endsAsSecret(name)).toBe(false);
});

const INNOCENT = [
  'Basic economy, please. I do not need a seat.',
  'A basic understanding of French is enough.',
  'She is the bearer of bad news again.',
  'The bearer of this letter may enter.',
  'Bearer documents are kept in the safe.',
  'My password is in the drawer.',
  'I forgot my password!',
  'The token of my appreciation',
  'Which key is it? The brass key.',
  'That is top secret, my dear.',
  'His pin is on the lapel.',
  'The risk-based approach of task-oriented teams',
  'sk-SK is a locale.',
  'Call me at +1 (555) 010-9999.',
  'The ISBN is 978-3-16-148410-0.',
  'Order 4711-0815-99 has shipped.',
  'The id is 123e4567-e89b-12d3-a456-426614174000.',
  'Look at https://example.com/orders/12345?page=2&sort=asc.',
  'The commit is 6c61df0a1b2c3d4e5f60718293a4b5c6d7e8f901.',
  'Flight LH 2034, seat 14C, gate B27.',
  'My IBAN ends with 3000.',
  'Version 1.2.3-beta.4 of the app',
  'At 10:30 on 2026-11-22.',
  'Basis-Tarif, bitte. Ohne Sitzplatz.',
  'Das Passwort liegt in der Schublade.',
  'Der Überbringer der schlechten Nachricht',
  'Mein Schlüssel ist weg.',
  'Das ist ein Geheimnis.',
  'Die Bestellnummer ist 2026-000123-DE.',
  'Rufen Sie mich unter 030 901820 an.',
  'Ich brauche ein Basic-Abo.',
  'Classe économique de base, merci.',
  'Le mot de passe est dans le tiroir.',
  'Un jeton de présence',
  'Le porteur de mauvaises nouvelles',
  'Ma clé est perdue.',
  "C'est un secret, bien sûr.",
  'La commande 2026-45-B est arrivée.',
  'Appelez le 01 44 27 44 27.',
  'Clase económica básica, por favor.',
  'La contraseña está en el cajón.',
  'El portador de malas noticias',
  'He perdido la llave.',
  'Es un secreto.',
  'El pedido 99-1234 ha llegado.',
  'Llame al 915 555 123.',
  'token: none',
  'password: ask Ann',
];

test.each(INNOCENT)('stays: %s', (sentence) => {
  expect(takeOut(sentence)).toBe(sentence);
});

test.each(Object.entries(CREDENTIALS))(
  '%s: no error message and no inspector shows it',
  (_, secret) => {
    expect(shown({ options: [secret] })).not.toContain(secret.slice(-12));
    expect(redactWords(secret, ['context', 'callId'])).not.toBe(secret);
    expect(redactKey(secret)).not.toBe(secret);
  },
);
