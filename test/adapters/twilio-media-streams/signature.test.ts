import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { isTwilioRequest, streamTwiml } from '../../../src/adapters/twilio-media-streams/index.ts';
import { ConfigurationError } from '../../../src/values/errors.ts';

/** The example in Twilio's documentation, "Validating Signatures from Twilio". */
const documented = {
  signature: 'RSOYDt4T1cUTdK1PDd93/VVr8B8=',
  url: 'https://mycompany.com/myapp.php?foo=1&bar=2',
  params: {
    Digits: '1234',
    To: '+18005551212',
    From: '+14158675309',
    Caller: '+14158675309',
    CallSid: 'CA1234567890ABCDE',
  },
};

const signed = (text: string): string => createHmac('sha1', 'key').update(text).digest('base64');

describe('a request', () => {
  test('passes with a valid signature of its URL and fields', () => {
    expect(isTwilioRequest('12345', documented)).toBe(true);
  });

  test.each([
    ['another token', '12346', {}],
    ['another address', '12345', { url: 'https://mycompany.com/myapp.php?foo=1&bar=3' }],
    ['another scheme', '12345', { url: 'http://mycompany.com/myapp.php?foo=1&bar=2' }],
    ['another field', '12345', { params: { ...documented.params, Digits: '1235' } }],
    ['a field more', '12345', { params: { ...documented.params, Admin: '1' } }],
    ['another signature', '12345', { signature: 'RSOYDt4T1cUTdK1PDd93/VVr8B9=' }],
    ['half a signature', '12345', { signature: documented.signature.slice(0, 14) }],
    ['no signature', '12345', { signature: undefined }],
  ])('fails with %s', (_what, token, changed) => {
    expect(isTwilioRequest(token, { ...documented, ...changed })).toBe(false);
  });

  test.each(['wss://example.com/call', 'wss://example.com:443/call'])(
    'passes as an upgrade, with or without the default port: %s',
    (url) => {
      for (const signedUrl of ['wss://example.com/call', 'wss://example.com:443/call'])
        expect(isTwilioRequest('key', { url, signature: signed(signedUrl) })).toBe(true);
      const other = signed('wss://example.com:8443/call');
      expect(isTwilioRequest('key', { url, signature: other })).toBe(false);
    },
  );

  test('sorts the values of a repeated field, and includes each once', () => {
    const url = 'https://example.com/';
    const params = { b: ['2', '1', '2'], a: 'x' };
    expect(isTwilioRequest('key', { url, params, signature: signed(`${url}axb1b2`) })).toBe(true);
  });

  test('cannot be checked without a token or a URL', () => {
    expect(() => isTwilioRequest('', documented)).toThrow(ConfigurationError);
    expect(() => isTwilioRequest('key', { url: '/call', signature: 'x' })).toThrow(
      /Expected an address with the host that Twilio knows, got "\/call"/,
    );
  });

  // What an app may build from `wss://${host}${request.url}` and a parsed body.
  test.each([
    ['an address that is none', { url: 'wss://example.com:8443http://[/' }],
    ['an asterisk', { url: 'wss://example.com:8443*' }],
    ['an object as a field', { params: { a: { b: '1' } } }],
    ['null as a field', { params: { a: null } }],
    ['two signatures', { signature: ['a', 'b'] }],
  ])('fails without throwing for %s', (_what, changed) => {
    expect(isTwilioRequest('key', { ...documented, ...changed } as never)).toBe(false);
  });
});

describe('TwiML', () => {
  test('yields a stream name and its parameters', () => {
    expect(streamTwiml('wss://example.com/call', { who: '"Ann" & <Bob>', a: "it's" })).toBe(
      '<?xml version="1.0" encoding="UTF-8"?><Response><Connect>' +
        '<Stream url="wss://example.com/call">' +
        '<Parameter name="who" value="&quot;Ann&quot; &amp; &lt;Bob&gt;"/>' +
        '<Parameter name="a" value="it&apos;s"/></Stream></Connect></Response>',
    );
  });

  test.each(['ws://example.com/call', 'https://example.com', 'wss://example.com/?key=1', '/call'])(
    'refuses a URL that Twilio would refuse: %s',
    (url) => {
      expect(() => streamTwiml(url)).toThrow(ConfigurationError);
    },
  );
});
