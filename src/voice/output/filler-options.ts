// What a filler is: a word while the user waits, in their language, and who says it.

import { check } from '../../values/checks.ts';
import { z } from 'zod';
import { ConfigurationError } from '../../values/errors.ts';
import { checkVoice, type Voice } from '../speech/voice.ts';
import type { Transport } from '../connection/transport.ts';

export interface FillerOptions {
  /** It is said after so much silence, in milliseconds. @defaultValue 2000 */
  readonly afterMs?: number;
  /**
   * What is said, one after the other from wait to wait; or that by language, such as
   * `{ en: ['One moment.'], it: ['Un attimo.'] }`. In a language that has none nothing is said.
   * @defaultValue phrases in English, German, French and Spanish
   */
  readonly say?: readonly string[] | Readonly<Record<string, readonly string[]>>;
  /**
   * Says it. @defaultValue the voice of the transport (`withVoice`), else the model itself, where
   * its wire can speak out of band
   */
  readonly voice?: Voice;
}

/** Options with their defaults, checked. */
export interface FillerSettings {
  readonly afterMs: number;
  readonly say: NonNullable<FillerOptions['say']>;
  /** Null: the model says it. */
  readonly voice: Voice | null;
}

const DEFAULT_AFTER_MS = 2000;

const DEFAULT_PHRASES: Readonly<Record<string, readonly string[]>> = {
  en: ['One moment.', 'Just a second.', 'Let me see.'],
  de: ['Einen Moment.', 'Eine Sekunde.', 'Ich sehe nach.'],
  fr: ['Un instant.', 'Une seconde.', 'Je regarde.'],
  es: ['Un momento.', 'Un segundo.', 'Déjeme ver.'],
};

const phrases = z.array(z.string().trim().min(1)).min(1);

const optionsSchema = z.strictObject({
  afterMs: z.number().nonnegative().optional(),
  say: z.union([phrases, z.record(z.string().min(1), phrases)]).optional(),
  voice: z.custom<Voice>().optional(),
});

/**
 * @throws {ConfigurationError} `INVALID_OPTION`, or `FILLER_NEEDS_VOICE` where nobody can say it: the
 * wire cannot make its model speak out of band, and no voice is given.
 */
export function checkedFiller(options: FillerOptions, transport: Transport): FillerSettings {
  check('filler', optionsSchema, options);
  const { afterMs = DEFAULT_AFTER_MS, say = DEFAULT_PHRASES } = options;
  const voice = options.voice ?? transport.voice ?? null;
  if (voice !== null) checkVoice('filler.voice', voice);
  else if (!transport.capabilities.speaksOutOfBand)
    throw new ConfigurationError(
      'FILLER_NEEDS_VOICE',
      `filler: the model of \`${transport.name}\` cannot speak out of band. ` +
        'Expected `filler.voice`, such as aiSdkVoice(…), or no filler',
    );
  return { afterMs, say, voice };
}

/** What may be said in the language of this tag, such as `en-GB`. */
export function phrasesIn(say: FillerSettings['say'], tag: string): readonly string[] {
  if (isList(say)) return say;
  const language = tag.toLowerCase();
  const [code = language] = language.split(/[-_]/);
  return say[tag] ?? say[language] ?? say[code] ?? [];
}

function isList(say: FillerSettings['say']): say is readonly string[] {
  return Array.isArray(say);
}
