import type { Failure } from '../../../machines/index.ts';
import type { ScopePorts } from '../../subagents/scope-ports.ts';
import type { SessionServices } from '../../services/session-services.ts';
import type { SubagentConfig } from '../../contracts/config.ts';
import type { Lead } from '../lead/lead.ts';
import type { SpeakProgress } from '../delivery/progress-pace.ts';
import type { LeadSession } from '../lead/lead-session.ts';

/** What the effects of a session see of it. */
export interface EffectsSession extends LeadSession {
  readonly lead: Lead;
  readonly services: SessionServices;
  readonly configs: Readonly<Record<string, SubagentConfig>>;
  /** Whom the subagents of background calls work for. */
  readonly ofCalls: ScopePorts;
  readonly startedAt: number;
  /** A snapshot with this number is in the journal. */
  readonly snapshots: { written(seq: number): void };
  /** Is progress said aloud, where its subagent does not say? */
  readonly speakProgress: SpeakProgress;
  /** The lead model cannot leave a call open: each is answered at once. */
  readonly acknowledgesCalls: boolean;
  /** A result is shown as it is before it is put into words. */
  readonly showsRawResults: boolean;
  /** To the clients. */
  sendJson(data: unknown): void;
  /** The model has said what it had to say. */
  turnEnded(): void;
  /** The floor may be free: what tools returned to the lead agent is told by now, or was not. */
  settleTold(): void;
  readonly life: {
    ended(error: Failure | null): void;
    connectionChanged(): void;
  };
}
