// The page of the voice demo: the conversation on the left, the subagents on the right. `view` is a tag of htm: a value in
// it is shown as text, never as markup. The import map replaces React with Preact, which needs no build.

import { html as view } from 'htm/preact';
import { Alerts, ConnectionStatus, useSession, useSpeaker, useTalkKeys } from 'offstage/react';
import { render } from 'preact';
import { useEffect, useState } from 'react';
import type { About } from './about.ts';
import { Offstage } from './offstage.ts';
import { client, request } from './session.ts';
import { Stage } from './stage.ts';
import { Icon, Welcome } from './welcome.ts';

function App() {
  const { status } = useSession(client);
  const speaker = useSpeaker(client).state;
  const [hasBegun, setBegun] = useState(false);
  const [about, setAbout] = useState<About | null>(null);
  const isOpen = status.state === 'open';
  useTalkKeys(client);
  useEffect(() => {
    if (speaker === 'on' || speaker === 'silent' || speaker === 'insecure') setBegun(true);
  }, [speaker]);
  useEffect(() => {
    if (isOpen) void request('/about').then((read) => read && setAbout(read as About));
  }, [isOpen]);
  if (status.state === 'closed' && status.reason?.code === 'UNAUTHORIZED')
    return view`<${Header} /><main class="notice-page"><h2>This link is not valid any more</h2>
      <p>Each start of the demo may have another link. Open the one that the terminal printed last: it ends with
        <code>#</code> and a long word.</p></main>`;
  return view`<${Header} about=${about} hasBegun=${hasBegun} />
    ${hasBegun ? view`<main class="room"><${Stage} /><${Offstage} canCrash=${about?.canCrash} /></main>` : view`<main class="room room-closed"><${Welcome} about=${about} /></main>`}
    <${Alerts} client=${client} labels=${{ closed: (reason: string) => `${reason}. Start the demo again to go on.` }} />`;
}

function Header({ about, hasBegun }: { about?: About | null; hasBegun?: boolean }) {
  const takeVoice = (): void =>
    void client.speaker.start({ silent: sessionStorage.getItem('started') === 'text' });
  return view`<header class="header">
    <h1 class="brand"><img src="/icon.svg" alt="" width="24" height="24" /> Offstage</h1>
    ${
      about &&
      view`<p class="line" role="group" aria-label="The voice"><span>${about.transport}</span>
      <span title=${about.lead}>${about.lead}</span></p>`
    }
    <${ConnectionStatus} client=${client} onTakeVoice=${hasBegun ? takeVoice : undefined} labels=${{ agent: 'The lead agent' }} />
    <${Theme} />
  </header>`;
}

/** Light or dark: the system setting, until the user chooses. */
function Theme() {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const wanted = (): string => localStorage.getItem('theme') ?? (system.matches ? 'dark' : 'light');
  const [theme, setTheme] = useState(wanted);
  useEffect(() => {
    const change = (): void => setTheme(wanted());
    system.addEventListener('change', change);
    return () => system.removeEventListener('change', change);
  }, []);
  document.documentElement.dataset['theme'] = theme;
  const other = theme === 'dark' ? 'light' : 'dark';
  const label = `${other === 'dark' ? 'Dark' : 'Light'} colours`;
  const toggle = (): void => {
    localStorage.setItem('theme', other);
    setTheme(other);
  };
  return view`<button class="icon-button" type="button" aria-label=${label} title=${label} onClick=${toggle}>
    <${Icon} name=${other === 'dark' ? 'moon' : 'sun'} /></button>`;
}

const root = document.getElementById('app');
if (root) render(view`<${App} />`, root);
