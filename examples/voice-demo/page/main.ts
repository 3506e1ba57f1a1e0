// The page of the voice demo: one lead agent to talk to, and a tray of those who work offstage.

import { html, render } from 'htm/preact';
import { App } from './components/app.ts';
import { installKeys } from './keys.ts';
import { clockOffsetMs, now } from './store.ts';
import { applyTheme } from './theme.ts';
import { connect } from './voice.ts';

applyTheme();
installKeys();
connect();
setInterval(() => {
  now.value = Date.now() + clockOffsetMs.value;
}, 250);
const root = document.getElementById('app');
if (root) render(html`<${App} />`, root);
