// A text conversation. The lead agent is a streaming model that reports subagents' results between its replies.

import type { LanguageModel } from 'ai';
import type { Observable } from 'rxjs';
import { z } from 'zod';
import { anObject, type ChecksOf } from '../../../values/checks.ts';
import { checkIsObject } from '../../../values/plain-checks.ts';
import type { SaidBy } from '../../contracts/identity.ts';
import { checkModel } from '../../model/model.ts';
import type { Runtime } from '../../admission/runtime.ts';
import { guarded } from '../../runtime/guarded-stream.ts';
import { SessionCore } from '../lifecycle/session-core.ts';
import {
  checkSessionOptions,
  sessionChecks,
  type SessionOptions,
  type StartOptions,
} from '../lifecycle/session-options.ts';
import { BaseSession } from './base-session.ts';
import type { PromptStyle } from '../state/synthetic-turns.ts';
import { TextLead } from '../lead/text-lead.ts';
import { TextOutput, type TextPart } from '../lead/text-output.ts';

export interface TextSessionOptions extends SessionOptions {
  /** The model of the lead agent, and of subagents that do not specify one. */
  readonly model: LanguageModel;
  /** The runtime that the session belongs to. */
  readonly runtime: Runtime;
  /**
   * The form in which results reach the lead model. With `turn`, results are also shown verbatim before the model
   * rephrases them. @defaultValue 'notice'
   */
  readonly promptStyle?: PromptStyle;
}

const schema = z.strictObject({
  ...sessionChecks,
  // Validated separately and first, because it is the option that is most often forgotten.
  model: z.unknown().optional(),
  runtime: anObject('a runtime: createRuntime(…)'),
  promptStyle: z.enum(['notice', 'turn']).optional(),
} satisfies ChecksOf<TextSessionOptions>);

/** @throws {ConfigurationError} if an option is unknown or invalid. */
function checkTextSession(options: TextSessionOptions): void {
  checkIsObject('new TextSession(options)', options, TEXT_EXAMPLE);
  checkModel('new TextSession(options): `model`', options.model);
  checkSessionOptions('TextSession', schema, options);
}

const TEXT_EXAMPLE =
  "new TextSession({ model: openai('gpt-5.4'), agents: [{ name: 'lead', instructions: 'You help the user.' }] })";

/**
 * The pause before a delivery that is due, in milliseconds. In a text session, a delivery starts as soon as nothing
 * else is being said.
 */
const QUIET_MS = 0;
/** The time in which the model must start to respond before the attempt fails. */
const OFFER_TIMEOUT_MS = 60_000;
const PLAY_TIMEOUT_MS = 600_000;
const MAX_ATTEMPTS = 3;

export class TextSession extends BaseSession {
  readonly #output: TextOutput;
  readonly #parts: Observable<TextPart>;
  readonly #lead: TextLead;
  #isOwnClient = false;

  /** @throws {ConfigurationError} if an option is invalid. */
  constructor(options: TextSessionOptions) {
    checkTextSession(options);
    const output = new TextOutput();
    const core = new SessionCore({
      ...options,
      outbox: {
        quietMs: QUIET_MS,
        offerTimeoutMs: OFFER_TIMEOUT_MS,
        playTimeoutMs: PLAY_TIMEOUT_MS,
        maxAttempts: MAX_ATTEMPTS,
      },
      settleTimeoutMs: 0,
      maxReconnects: 0,
      canInterrupt: true,
      hasVoice: false,
      consolidation: options.consolidation ?? 'batch',
      makeLead: (made) => new TextLead(made, options.model, output),
    });
    super(core);
    this.#output = output;
    this.#parts = guarded(output.parts, core.host, 'parts');
    this.#lead = core.lead;
  }

  /** The output from now on, including replies that no caller is reading. Past output is not replayed. */
  get parts(): Observable<TextPart> {
    return this.#parts;
  }

  /**
   * Starts the session, and resolves when it accepts input. The embedding program counts as an attached client for as
   * long as the session exists, unless another client attached first. In that case, clients attach and detach with
   * `attach`.
   */
  override async start(options?: StartOptions): Promise<void> {
    await super.start(options);
    if (this.isAttached || this.#isOwnClient) return;
    this.attach();
    this.#isOwnClient = true;
  }

  protected override get ownClients(): number {
    return Number(this.#isOwnClient);
  }

  /**
   * Sends text to the session, and reads the output until there is nothing left to say for now. Later results arrive
   * through `parts`.
   */
  async *send(text: string, options: SaidBy = {}): AsyncGenerator<TextPart, void, undefined> {
    const { parts, end } = this.#output.read();
    const taken = this.sendText(text, options);
    void taken.then(() => this.#lead.whenIdle(end), end);
    yield* parts;
    await taken;
  }

  /** Reads the output from now on until the session is closed. */
  read(): AsyncGenerator<TextPart, void, undefined> {
    return this.#output.read().parts;
  }
}
