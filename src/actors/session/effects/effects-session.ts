// The session as its effects see it.

import type { LanguageModel } from 'ai';
import type { Failure } from '../../../machines/index.ts';
import type { ScopePorts } from '../../subagents/scope-ports.ts';
import type { SessionServices } from '../../services/session-services.ts';
import type { SpeakProgress, SubagentConfig } from '../../contracts/config.ts';
import type { ReturnedResult } from '../../contracts/records.ts';
import type { ClientCalls } from './client-calls.ts';
import type { LeadSession } from '../lead/lead-agents.ts';
import type { Reach } from './reach.ts';
import type { Schedules } from './schedules.ts';

export interface EffectsSession extends LeadSession {
  readonly clientCalls: ClientCalls;
  readonly schedules: Schedules;
  readonly reach: Reach;
  readonly services: SessionServices;
  readonly configs: Readonly<Record<string, SubagentConfig>>;
  /** The ports for which the subagents of background calls work. */
  readonly ofCalls: ScopePorts;
  readonly startedAt: number;
  /** Receives the number of a snapshot that is in the journal. */
  readonly snapshots: { written(seq: number): void };
  /** The default of `SubagentConfig.speakProgress`. */
  readonly speakProgress: SpeakProgress;
  /** Whether the lead model cannot leave a call open, so that each call is answered at once. */
  readonly acknowledgesCalls: boolean;
  /** Whether a result is shown unchanged before the model rephrases it. */
  readonly showsRawResults: boolean;
  /** The model that reads the user's words where the language has no tables. */
  readonly consentModel: LanguageModel | undefined;
  /** Receives the ends of the model's turns. */
  readonly upkeep: { turnEnded(): void };
  /** Returns the subagents' results that were read while this call ran. */
  returnedTo(callId: string): readonly ReturnedResult[] | null;
  /** Called when the floor may be free: settles whether the results of tools were reported. */
  settleTold(): void;
  readonly life: {
    ended(error: Failure | null): void;
    connectionChanged(): void;
  };
}
