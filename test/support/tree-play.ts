// Plays a story of a tree of subagents, checks the tree whenever it is idle, and ends it. First, all nodes behave until
// the tree is idle, which must happen within a limited time. Then the scope is closed and must leave nothing behind.

import { simulatedEnvironment } from '../../src/testing/index.ts';
import { configOf, everyToolName, onStage, rootTools } from './tree-tools.ts';
import { TreeChecks } from './tree-checks.ts';
import { QuestionBook } from './tree-questions.ts';
import { openPlace, type Place } from './tree-scene.ts';
import { Stage, type Counts } from './tree-stage.ts';
import { inWords, parentOf, type Outside, type Scene, type Story } from './tree-story.ts';
import { TreeUser } from './tree-user.ts';

/** The time limit for the tree to become idle, in milliseconds after the last outside event. */
const IDLE_WITHIN_MS = 200_000;
const ROUND_MS = 2000;
const THE_LEAD = { subagentId: null };

/** Plays the story. @throws an error that says what went wrong and describes the story in words */
export async function play(story: Story, scene: Scene, counts: Counts): Promise<void> {
  const theatre = new Theatre(story, scene, counts);
  const { wrong } = theatre.stage;
  try {
    await theatre.play();
  } catch (error) {
    wrong.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  } finally {
    theatre.checks.stop();
  }
  if (wrong.length > 0)
    throw new Error(`${wrong.slice(0, 5).join('\n')}\nIn ${scene}. ${inWords(story)}`);
}

class Theatre {
  readonly stage: Stage;
  readonly checks: TreeChecks;
  readonly #book: QuestionBook;
  readonly #place: Place;
  readonly #user: TreeUser;
  #closing: Promise<void> | null = null;

  constructor(story: Story, scene: Scene, counts: Counts) {
    const stage = new Stage(story, simulatedEnvironment({ seed: story.seed }), counts);
    this.stage = stage;
    onStage(stage);
    this.#book = new QuestionBook(stage);
    const place = openPlace(stage, scene, (question, signal) =>
      this.#user.answers(question, signal),
    );
    this.#place = place;
    this.#user = new TreeUser(stage, this.#book, place);
    stage.service = place.service;
    this.checks = new TreeChecks(stage, place.runtime);
    place.service.events.subscribe((chunk) => this.checks.on(chunk));
    place.session?.events.subscribe((event) => {
      if (event.type === 'question.changed') this.#book.changed(event.question);
    });
  }

  async play(): Promise<void> {
    const { stage } = this;
    const { outside, nodes } = stage.story;
    this.#user.attach();
    if (this.#place.session) await this.#inTime(this.#place.session.start());
    nodes.forEach((_, index) => {
      if (parentOf(nodes, index) === null) this.#spawn(index);
    });
    await this.#pause(0);
    for (const each of outside) {
      await this.#pause(each.afterMs);
      await this.#happens(each);
      await this.#pause(0);
    }
    await this.#becomesIdle();
    if (this.#closing === null && stage.wrong.length === 0) await this.#isForgotten();
    await this.#ends();
  }

  /** Assigns a task on behalf of the app. */
  #spawn(index: number): void {
    const { stage } = this;
    const { grant, workstream = null, maxDepth = null } = stage.story.nodes[index] ?? {};
    const denied = new Set(grant?.denied);
    const tools = new Set(everyToolName().filter((name) => !denied.has(name)));
    const asked = { node: index, by: null, tools, denied, workstream };
    const receipt = stage.asks(asked, () =>
      stage.service.spawn({
        config: { ...configOf(stage, index), tools: rootTools },
        task: { toolName: `n${index}`, args: {}, description: `Do n${index}` },
        caller: THE_LEAD,
        grant: { tools: [], disallowedTools: [...denied] },
        ...(workstream === null ? {} : { workstreamId: workstream }),
        ...(maxDepth === null ? {} : { maxDepth }),
      }),
    );
    stage.settleSpawn(receipt.status === 'accepted' ? null : receipt.error);
  }

  async #happens({ kind, n }: Outside): Promise<void> {
    const { stage } = this;
    const user = this.#user;
    switch (kind) {
      case 'words':
        if (n % 3 > 0) await this.#hearsOut();
        user.speaks(n);
        break;
      case 'barge in':
        user.breaksIn();
        break;
      case 'click':
        if (n % 3 > 0) await this.#hearsOut();
        user.clicks(n, 'now');
        break;
      case 'click late':
        user.clicks(n, 'late');
        break;
      case 'click wrong':
        user.clicks(n, 'wrong');
        break;
      case 'inform':
        this.#inform(n);
        break;
      case 'cancel': {
        const id = stage.someone(n);
        if (stage.isLive(id)) stage.people.get(id)?.blamed.add('cancelled');
        if (stage.service.cancel(id, THE_LEAD, 'no longer needed')) stage.count('cancelled');
        break;
      }
      case 'message':
        this.#message(n);
        break;
      case 'detach':
        user.detach();
        break;
      case 'attach':
        user.attach();
        break;
      case 'close':
        if (n % 2 === 0) this.#close();
        break;
      case 'journal breaks':
        stage.journalBreaks(600);
        break;
      case 'pause':
        break;
    }
  }

  #message(n: number): void {
    const { stage } = this;
    const mode = (['queue', 'steer', 'interrupt'] as const)[n % 3] as 'queue';
    const words = { content: `From above ${stage.next()}`, mode };
    const sent = stage.service.send(stage.someone(n), words, THE_LEAD);
    stage.count(sent.ok ? `${mode} sent` : `not sent: ${sent.error.code}`);
    if (!sent.ok) return;
    stage.waits.begun += 1;
    void sent.receipt.then(() => {
      stage.waits.settled += 1;
    });
  }

  /** Answers a question on behalf of the lead agent or the program. */
  #inform(n: number): void {
    const { stage } = this;
    const asking = stage.service
      .list(THE_LEAD)
      .filter(
        ({ pendingRequest, parentId }) => pendingRequest && (parentId === null || n % 2 === 0),
      );
    const one = asking[n % Math.max(1, asking.length)];
    if (!one?.pendingRequest) return;
    const inResponseTo = n % 7 === 6 ? 'req_404' : one.pendingRequest.requestId;
    const sent = stage.service.send(
      one.id,
      { content: `I${stage.next()}`, inResponseTo },
      THE_LEAD,
    );
    stage.count('informed');
    stage.expect(
      sent.ok === (n % 7 !== 6),
      'P3',
      () => `${inResponseTo} of ${one.id}: ${JSON.stringify(sent)}`,
    );
  }

  /** In a voice session, waits until the current question has been heard and seen before the user acts. */
  async #hearsOut(): Promise<void> {
    for (let round = 0; round < 4 && this.#book.owner?.state === 'presenting'; round += 1)
      await this.#pause(300);
  }

  #close(): void {
    const { stage } = this;
    if (this.#closing) return;
    if (stage.live.length > 0) stage.count('closed at work');
    stage.blameAll('closed');
    stage.isClosing = true;
    this.#closing = this.#place.close();
  }

  /** Lets time pass until the tree is idle, and then checks it. */
  async #pause(ms: number): Promise<void> {
    const { environment } = this.stage;
    if (ms > 0) {
      this.#user.listens();
      await environment.advance(ms);
    } else await environment.settle();
    this.checks.check();
    if (this.stage.isPrompt) this.#book.check();
  }

  async #becomesIdle(): Promise<void> {
    const { stage } = this;
    this.#user.attach();
    for (
      let waitedMs = 0;
      stage.live.length > 0 && stage.wrong.length === 0;
      waitedMs += ROUND_MS
    ) {
      if (waitedMs >= IDLE_WITHIN_MS) {
        const left = stage.service.live.map(({ id, state }) => `${id} is ${state}`);
        stage.wrong.push(`P1: not quiet after ${waitedMs} ms: ${left.join(', ')}`);
        return;
      }
      await this.#pause(ROUND_MS);
    }
  }

  /** Checks that delivered results are forgotten in time and that nothing else remains. */
  async #isForgotten(): Promise<void> {
    const { stage } = this;
    const { service, environment } = stage;
    for (const { id, outcome } of service.list(THE_LEAD, { includeEnded: true })) {
      const checked = service.check(id, THE_LEAD);
      const told = stage.people.get(id)?.told;
      stage.expect(
        checked.ok && JSON.stringify(outcome) === told,
        'P1',
        () => `the outcome of ${id} changed`,
      );
    }
    await environment.advance(1000);
    service.sweep();
    this.#isEmpty();
    const left = service.list(THE_LEAD, { includeEnded: true }).map(({ id }) => id);
    stage.expect(left.length === 0, 'P7', () => `${left.join()} are never forgotten`);
  }

  /** Checks that all places are free again, so that as many subagents can be spawned as before. */
  #isEmpty(): void {
    const { stage } = this;
    const { supervisor } = this.#place.runtime;
    const scope = stage.service.id;
    const ids = Array.from({ length: stage.story.limits.live }, (_, at) => `probe_${at}`);
    const probes = ids.map((id) => ({ id, rejection: supervisor.admit(scope, id) }));
    for (const { id, rejection } of probes) {
      if (!rejection) supervisor.retract(scope, id);
      const why = rejection?.message ?? '';
      stage.expect(!why.includes('maxLive'), 'P7', () => `places are held by nobody: ${why}`);
    }
  }

  async #ends(): Promise<void> {
    const { stage } = this;
    const { supervisor } = this.#place.runtime;
    this.#close();
    await this.#inTime(this.#closing as Promise<void>);
    await stage.environment.settle();
    const left = stage.environment.pendingTimers - stage.ownTimers;
    stage.expect(left === 0, 'P7', () => `${left} timers are left`);
    const rejection = supervisor.admit(stage.service.id, 'sub_late');
    stage.expect(rejection !== null, 'P7', () => 'the scope is still open');
    this.checks.end();
    this.#book.end();
  }

  /** Awaits a promise of the scope while the journal catches up and time passes. */
  async #inTime(promise: Promise<unknown>): Promise<void> {
    let isDone = false;
    const done = (): void => {
      isDone = true;
    };
    void promise.finally(done).catch(() => {});
    const { environment } = this.stage;
    await environment.settle();
    for (let round = 0; round < 400 && !isDone; round += 1) await environment.advance(100);
    this.stage.expect(isDone, 'P7', () => 'it never began, or never closed');
    if (isDone) await promise;
  }
}
