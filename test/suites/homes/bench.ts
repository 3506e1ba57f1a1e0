// One case in the suite of homes: its users, who are clients of `offstage/client`, and the counted calls of its agents.

import { connect, type SessionClient } from '../../../src/client/index.ts';
import type { QuestionView, SessionState } from '../../../src/actors/contracts/session-views.ts';
import { ConformanceError } from '../../../src/testing/conformance/conformance-error.ts';
import { CountingBench } from '../counting-bench.ts';
import type { Tell } from '../runs/travel-agent.ts';

/** An ability of a home that a case requires. */
export type HomeFault =
  /** Two nodes, which are processes that share the sessions. */
  | 'nodes'
  /** A node's process is paused and later resumes without noticing. */
  | 'stops'
  /** A node drains before a deploy. */
  | 'drains'
  /** The platform removes a home from memory while its clients stay connected. */
  | 'evicts';

/**
 * A home with the agents of `homeConformanceAgents`. A user's token is the user's name. `session` names the session.
 */
export interface HomeStage {
  /** The address of the server at node 0 or 1, which stays the same after a restart. */
  url(node: number): string;
  /** Kills a node without a signal. Resolves when the node is gone. */
  kill(node: number): Promise<void>;
  /** Resolves when the node is up again with its stored data. */
  start(node: number): Promise<void>;
  /** Returns whether a node has this session in memory. */
  isAwake(sessionId: string): Promise<boolean>;
  /** `stops` */
  stop?(node: number): void;
  go?(node: number): void;
  /** `drains`. Resolves when the node's process has ended. */
  drain?(node: number): Promise<void>;
  /** `evicts`. Resolves when the session has left memory. */
  evict?(sessionId: string): Promise<void>;
  close?(): void | Promise<void>;
}

export interface HomeConformanceSetup {
  /** The name of the home for error messages. */
  readonly name: string;
  readonly shows: readonly HomeFault[];
  /** The number of cases with random kills, of each kind. @defaultValue 5 */
  readonly seeds?: number;
  /** The maximum number of polls. @defaultValue 6,000 */
  readonly patience?: number;
  /** Waits between two polls. */
  readonly moment: () => Promise<void>;
  /** Opens a stage for one case and starts its nodes. The stage's agents report their calls through `tell`. */
  open(tell: Tell): HomeStage | Promise<HomeStage>;
}

export interface HomeScene {
  readonly name: string;
  readonly needs?: readonly HomeFault[];
  readonly play: (bench: HomeBench) => Promise<void>;
}

const PATIENCE = 6_000;
const NODES = 2;
/** A user gives up after this many rejected button presses. */
const MAX_PRESSES = 20;
let sessions = 0;

/** A user who is looking at a page. The page reports everything that it displays as shown. */
export class HomeUser {
  readonly client: SessionClient;
  readonly #bench: HomeBench;
  readonly #shown = new Set<string>();

  constructor(bench: HomeBench, client: SessionClient) {
    this.#bench = bench;
    this.client = client;
  }

  get state(): SessionState {
    return this.client.store.getSnapshot().context;
  }

  /** The texts of the user and the lead agent, in order. */
  get said(): readonly string[] {
    return this.state.transcript.map(({ text }) => text);
  }

  /** Looks at the page once. The page reconnects at once and shows its questions and deliveries. */
  look(): void {
    this.client.reconnect();
    const { questions, transcript } = this.state;
    for (const { requestId, state } of questions)
      if (state === 'presenting' || state === 'open') this.#show(requestId);
    // The user has seen a delivery once its text is on the page.
    for (const { final, deliveryId, deliveryIds = [] } of transcript)
      if (final && deliveryId !== undefined)
        for (const id of [deliveryId, ...deliveryIds]) this.#show(id);
  }

  #show(id: string): void {
    if (this.#shown.has(id)) return;
    this.#shown.add(id);
    // The page shows the delivery again if that report was lost.
    this.client.shown(id).catch(() => this.#shown.delete(id));
  }

  /**
   * Sends the text. If a server died and the outcome is unknown, sends the text again unless the transcript
   * contains it.
   */
  async say(text: string): Promise<void> {
    for (;;)
      try {
        await this.#bench.settled(`"${text}" to be heard`, this.client.send(text));
        return;
      } catch (error) {
        if ((error as { code?: string }).code !== 'FATE_UNKNOWN') throw error;
        if (this.said.includes(text)) return;
      }
  }

  /** Waits for an open question about this errand. */
  question(errand: string): Promise<QuestionView> {
    return this.#bench.until(`a question of ${errand}`, () =>
      this.state.questions.find(
        ({ state, question }) => state === 'open' && question.includes(`${errand}?`),
      ),
    );
  }

  async answer(requestId: string, text: string): Promise<boolean> {
    for (let presses = 1; ; presses += 1) {
      const pressed = this.client.answer(requestId, { text });
      const receipt = await this.#bench.settled('a receipt', pressed);
      if (receipt.accepted) return true;
      // After a kill, the user may press a button on an old card before the question is put again.
      if (receipt.reason !== 'not_presented' || presses === MAX_PRESSES)
        return receipt.reason === 'over';
      await this.#bench.until('the card of the question', () =>
        this.state.questions.some((card) => card.requestId === requestId && card.state === 'open')
          ? true
          : undefined,
      );
    }
  }

  /** Waits for the report on this errand. */
  told(errand: string): Promise<string> {
    return this.#bench.until(`${errand} to be told`, () =>
      this.said.find((text) => text.includes(`Told ${errand} `)),
    );
  }
}

export class HomeBench extends CountingBench {
  readonly #setup: HomeConformanceSetup;
  readonly #users: HomeUser[] = [];
  /** The session of this case. */
  readonly session: string;
  #stage: HomeStage | null = null;

  constructor(setup: HomeConformanceSetup) {
    super(setup.name);
    this.#setup = setup;
    sessions += 1;
    this.session = `case-${sessions}`;
  }

  async open(): Promise<void> {
    this.#stage = await this.#setup.open(this.tell);
  }

  async close(): Promise<void> {
    for (const { client } of this.#users) client.close();
    this.releaseAll();
    await this.#stage?.close?.();
  }

  get stage(): HomeStage {
    if (this.#stage) return this.#stage;
    throw new ConformanceError(`${this.#setup.name}: the stage is not open`);
  }

  get nodes(): number {
    return this.#setup.shows.includes('nodes') ? NODES : 1;
  }

  /** A user who has opened a page at this node. */
  user(name = 'ann', node = 0): HomeUser {
    const client = connect({
      url: this.stage.url(node),
      session: this.session,
      token: name,
      transport: 'websocket',
      onError: (error) => this.note(String(error)),
    });
    const user = new HomeUser(this, client);
    this.#users.push(user);
    return user;
  }

  async connected(name = 'ann', node = 0): Promise<HomeUser> {
    const user = this.user(name, node);
    await this.until(`${name} to be connected`, () =>
      user.client.status.get().state === 'open' ? true : undefined,
    );
    return user;
  }

  /** Kills all nodes at once, then starts them again. */
  async killAll(): Promise<void> {
    await Promise.all(Array.from({ length: this.nodes }, (_, node) => this.stage.kill(node)));
  }

  async startAll(): Promise<void> {
    await Promise.all(Array.from({ length: this.nodes }, (_, node) => this.stage.start(node)));
  }

  /** Waits until no node has the session in memory. */
  async asleep(): Promise<void> {
    let isAwake = true;
    for (let look = 0; isAwake; look += 1) {
      this.#checkPatience(look, 'the session to leave memory');
      isAwake = await this.stage.isAwake(this.session);
      if (isAwake) await this.moment();
    }
  }

  async until<T>(what: string, seen: () => T | undefined): Promise<T> {
    for (let look = 0; ; look += 1) {
      for (const user of this.#users) user.look();
      const found = seen();
      if (found !== undefined) return found;
      this.#checkPatience(look, what);
      await this.moment();
    }
  }

  /** Waits for a promise for as long as the patience of the stage allows. */
  async settled<T>(what: string, promise: Promise<T>): Promise<T> {
    let end: (() => T) | undefined;
    promise.then(
      (value) => (end = () => value),
      (error: unknown) =>
        (end = () => {
          throw error;
        }),
    );
    return (await this.until(what, () => end))();
  }

  moment(): Promise<void> {
    return this.#setup.moment();
  }

  #checkPatience(look: number, what: string): void {
    this.expect(look < (this.#setup.patience ?? PATIENCE), what);
  }

  protected get besides(): string {
    const users = this.#users.map(({ client, said, state }) => ({
      ...client.status.get(),
      said,
      subagents: state.subagents.map((each) => [each.id, each.state]),
      questions: state.questions.map((each) => [each.requestId, each.state]),
      deliveries: state.deliveries.map((each) => [each.deliveryId, each.state]),
    }));
    return `users: ${JSON.stringify(users).slice(-2_500)}`;
  }
}
