// The abilities of the Gemini Live models. All models use one protocol, but each supports a different part of it. The
// table has one row per model family. An unknown model gets the most conservative row.
//
// MODELS-1. A row describes the features that the vendor documents for the family. Where the documentation is unclear,
//     the row is conservative.

import type { TransportCapabilities } from '../../voice/connection/transport.ts';
import { INPUT_SAMPLE_RATE_HZ, OUTPUT_SAMPLE_RATE_HZ } from './wire.ts';

export interface ModelTraits {
  readonly family: string;
  /**
   * `waits`: the model pauses until it receives the response to a call. `goes_on`: a call may stay open while the model
   * speaks, if the tool declares it. `unknown`: the model may behave in either way.
   */
  readonly duringCall: 'waits' | 'goes_on' | 'unknown';
  /** Whether the values `SILENT`, `WHEN_IDLE` and `INTERRUPT` of a function response have an effect. */
  readonly honoursScheduling: boolean;
  /**
   * When messages can be added to the conversation. `initially`: only before the first audio. The model responds to any
   * later text.
   */
  readonly clientContent: 'anytime' | 'initially';
  /** `historyConfig.initialHistoryInClientContent`: whether the model accepts a history without responding to it. */
  readonly seedsHistory: boolean;
  /** Whether instructions and tools can be changed with `contextUpdate`. */
  readonly contextUpdate: boolean;
  /** The thinking settings that the setup accepts. `one_of`: requires either a level or a budget, but not both. */
  readonly thinking: 'none' | 'level' | 'budget' | 'one_of' | 'any';
}

const native25: ModelTraits = {
  family: '2.5 native audio',
  duringCall: 'goes_on',
  honoursScheduling: true,
  clientContent: 'anytime',
  seedsHistory: false,
  contextUpdate: false,
  thinking: 'budget',
};

const flash31: ModelTraits = {
  family: '3.1 flash live',
  duringCall: 'waits',
  honoursScheduling: false,
  clientContent: 'initially',
  seedsHistory: true,
  contextUpdate: false,
  thinking: 'level',
};

const live38: ModelTraits = {
  family: '3.8 live',
  duringCall: 'goes_on',
  honoursScheduling: true,
  clientContent: 'anytime',
  seedsHistory: true,
  contextUpdate: true,
  thinking: 'none',
};

const thinking38: ModelTraits = {
  ...live38,
  family: '3.8 live extended thinking',
  thinking: 'one_of',
};

const unknown: ModelTraits = {
  ...flash31,
  family: 'unknown',
  duringCall: 'unknown',
  thinking: 'any',
};

/** The first row whose pattern matches applies. */
const rows: readonly (readonly [name: RegExp, traits: ModelTraits])[] = [
  [/^gemini-3\.8-live-.*thinking/, thinking38],
  [/^gemini-3\.8-live/, live38],
  [/^gemini-3\.1-flash-live/, flash31],
  [/^gemini-(?:live-)?2\.5-flash/, native25],
];

/** Returns the traits of the model; the prefix `models/` is optional. */
export function traitsOf(model: string): ModelTraits {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return rows.find(([pattern]) => pattern.test(name))?.[1] ?? unknown;
}

/** A connection lasts about ten minutes. The server announces its end with `goAway`. */
const MAX_CONNECTION_MS = 10 * 60_000;

export function capabilitiesOf(traits: ModelTraits): TransportCapabilities {
  const addsAnytime = traits.clientContent === 'anytime';
  return Object.freeze({
    inputSampleRateHz: INPUT_SAMPLE_RATE_HZ,
    outputSampleRateHz: OUTPUT_SAMPLE_RATE_HZ,
    output: 'audio',
    utterances: 'inferred',
    endsUtterances: true,
    responds: 'by_itself',
    correlatesResponses: true,
    // Client content interrupts the model's current generation.
    cancelsResponses: addsAnytime,
    truncatesAudio: false,
    deletesItems: false,
    speaksOutOfBand: false,
    silentContext: addsAnytime,
    takesSystemMessages: false,
    toolCalls: 'named',
    defersToolResults: traits.duringCall === 'goes_on',
    schedulesToolResults: traits.honoursScheduling,
    updatesSession: traits.contextUpdate,
    resumes: true,
    acceptsImages: true,
    maxConnectionMs: MAX_CONNECTION_MS,
  });
}
