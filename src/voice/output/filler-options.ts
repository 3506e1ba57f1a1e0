// The options of a filler: a short phrase while the user waits, in their language, and the voice that says
// it.

import { check } from '../../values/checks.ts';
import { z } from 'zod';
import { ConfigurationError } from '../../values/errors.ts';
import { checkVoice, type Voice } from '../speech/voice.ts';
import type { Transport } from '../connection/transport.ts';

export interface FillerOptions {
  /** Silence before the phrase is said, in milliseconds. @defaultValue 2000 */
  readonly afterMs?: number;
  /**
   * The phrases, used in turn from wait to wait; or the phrases by language, such as `{ en: ['One moment.'],
   * it: ['Un attimo.'] }`. In a language without phrases the filler stays silent.
   * @defaultValue phrases in English, German, French and Spanish
   */
  readonly say?: readonly string[] | Readonly<Record<string, readonly string[]>>;
  /**
   * The voice that says the phrase. @defaultValue the voice of the transport (`withVoice`), else the model
   * itself, if the transport can speak out of band
   */
  readonly voice?: Voice;
}

/** Checked options with their defaults. */
export interface FillerSettings {
  readonly afterMs: number;
  readonly say: NonNullable<FillerOptions['say']>;
  /** Null if the model says the phrase. */
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
 * @throws {ConfigurationError} `INVALID_OPTION`, or `FILLER_NEEDS_VOICE` if the transport cannot make its
 *   model speak out of band and no voice is given.
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

/** Returns the phrases for a language tag such as `en-GB`. */
export function phrasesIn(say: FillerSettings['say'], tag: string): readonly string[] {
  if (isList(say)) return say;
  const language = tag.toLowerCase();
  const [code = language] = language.split(/[-_]/);
  return say[tag] ?? say[language] ?? say[code] ?? [];
}

function isList(say: FillerSettings['say']): say is readonly string[] {
  return Array.isArray(say);
}
