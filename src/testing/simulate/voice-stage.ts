// A stage whose voice models use no protocol. It is for simulations, and for the conformance suite, which also runs on
// this stage.

import type { Transport, TransportCapabilities } from '../../voice/connection/transport.ts';
import { spokenLead } from '../../voice/spoken-lead.ts';
import type { ConformanceSetup, ConformanceWorld } from '../conformance/stage.ts';
import { VoiceModel } from './voice-model.ts';

/** The capabilities that most models have. The session does not need to emulate any of them. */
export const SIMULATED_CAPABILITIES: TransportCapabilities = {
  inputSampleRateHz: 8000,
  outputSampleRateHz: 8000,
  output: 'audio',
  utterances: 'reported',
  endsUtterances: false,
  responds: 'when_asked',
  correlatesResponses: true,
  cancelsResponses: true,
  truncatesAudio: true,
  deletesItems: true,
  speaksOutOfBand: false,
  silentContext: true,
  toolCalls: 'named',
  defersToolResults: true,
  schedulesToolResults: false,
  updatesSession: true,
  resumes: false,
  acceptsImages: false,
  maxConnectionMs: null,
};

/** Creates a voice model without a protocol. `changed`: the capabilities that differ from the usual ones. */
export function simulatedVoice(
  changed: Partial<TransportCapabilities> = {},
  name = 'simulated voice',
): ConformanceSetup {
  return {
    name,
    shows: ['late_transcripts', 'duplicated_transcripts', 'expiry', 'silence', 'television'],
    open(world) {
      const models: VoiceModel[] = [];
      return {
        transport: transportOver(world, models, { ...SIMULATED_CAPABILITIES, ...changed }),
        models,
      };
    },
  };
}

function transportOver(
  world: ConformanceWorld,
  models: VoiceModel[],
  can: TransportCapabilities,
): Transport {
  const counts = new Map<string, number>();
  const nextId = (prefix: string): string => {
    const count = (counts.get(prefix) ?? 0) + 1;
    counts.set(prefix, count);
    return `${prefix}_${count}`;
  };
  return {
    name: 'simulated',
    lead: spokenLead,
    capabilities: can,
    connect(_configuration, { resume }) {
      const remembered = can.resumes ? (resume as Pick<VoiceModel, 'memory'> | undefined) : null;
      const model = new VoiceModel(
        { ...world, capabilities: can, nextId },
        remembered?.memory ?? [],
        { type: 'transport.ready', ...(remembered ? { resumed: true } : {}) },
      );
      models.push(model);
      return model;
    },
  };
}
