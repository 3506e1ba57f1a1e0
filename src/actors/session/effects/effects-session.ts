// The parts of a session that its effect handlers use.

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
  /** The ports that the subagents of background calls use. */
  readonly ofCalls: ScopePorts;
  readonly startedAt: number;
  /** Receives the entry number of a snapshot that is now in the journal. */
  readonly snapshots: { written(seq: number): void };
  /** The default of `SubagentConfig.speakProgress`. */
  readonly speakProgress: SpeakProgress;
  /** Whether each call is answered immediately, because the lead model cannot leave a call open. */
  readonly acknowledgesCalls: boolean;
  /** Whether a result is shown unchanged before the model rephrases it. */
  readonly showsRawResults: boolean;
  /** The model that interprets the user's words if Offstage has no tables for the language. */
  readonly consentModel: LanguageModel | undefined;
  /** Notified when the model's turns end. */
  readonly upkeep: { turnEnded(): void };
  /** Returns the subagents' results that this call read while it ran. */
  returnedTo(callId: string): readonly ReturnedResult[] | null;
  /**
   * Called when the floor may be free. Checks whether the lead agent has reported the results that its tools returned.
   */
  settleTold(): void;
  readonly life: {
    ended(error: Failure | null): void;
    connectionChanged(): void;
  };
}
