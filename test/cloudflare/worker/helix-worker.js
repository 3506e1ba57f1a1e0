// "Cloudflare Runtime" of the Helix document: a parent with three sub-agents. Its run is a Durable Object, which is asked for the
// outcome; the alarm goes on with the run when the object has died. The sub-agents are in the same object.

import { createRuntime } from 'offstage';
import { runSubagent } from 'offstage/subagents';
import { durableObjectJournal, workersEnvironment } from 'offstage/cloudflare';
import { helixModel, parent } from '../../engines/support/helix.ts';

const WATCHDOG_MS = 1_000;

export class Chat {
  #storage;
  #runtime;
  #model;
  #result = null;

  constructor({ storage }, env) {
    const environment = workersEnvironment();
    const journal = durableObjectJournal({ storage, environment });
    this.#storage = storage;
    this.#runtime = createRuntime({ environment, journal });
    this.#model = helixModel((what) =>
      fetch(env.TELL_URL, { method: 'POST', body: what }).then((response) => response.text()),
    );
  }

  #outcome() {
    return (this.#result ??= runSubagent(parent, 'Summarize both, and analyze the sales.', {
      runtime: this.#runtime,
      model: this.#model,
      id: 'run',
    }).result);
  }

  async fetch(request) {
    const words = new URL(request.url).searchParams.get('kept');
    if (words !== null) {
      const query = 'select count(*) as n from entries where instr(event, ?) > 0';
      return Response.json(this.#storage.sql.exec(query, words).one().n);
    }
    await this.#storage.setAlarm(Date.now() + WATCHDOG_MS);
    const { status, text } = await this.#outcome();
    return Response.json({ status, text });
  }

  async alarm() {
    // An alarm that fired is used up.
    await this.#storage.setAlarm(Date.now() + WATCHDOG_MS);
    await this.#outcome();
    await this.#storage.deleteAlarm();
  }
}

export default { fetch: (request, env) => env.CHAT.getByName('parent').fetch(request) };
