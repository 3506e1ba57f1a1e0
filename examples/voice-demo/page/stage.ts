// The left side: what has been said, what subagents and buttons did in between, and the controls for speaking and
// typing.

import { html as view } from 'htm/preact';
import {
  MessageField,
  TalkButton,
  TalkHint,
  TalkModes,
  Transcript,
  useMicrophone,
  useSession,
  useSpeaker,
  useTranscript,
  useTranscriptNotes,
} from 'offstage/react';
import { client, say, start } from './session.ts';
import { Icon } from './welcome.ts';

export function Stage() {
  const { floor } = useSession(client);
  const microphone = useMicrophone(client);
  const isSilent = ['silent', 'insecure'].includes(useSpeaker(client).state);
  const items = useTranscript(client);
  const notes = useTranscriptNotes(client);
  const isOff = microphone.state !== 'on' || microphone.isMuted;
  return view`<section class="stage" aria-label="Conversation" data-listening=${microphone.isOpen && floor === 'user'} data-empty=${items.length + notes.length === 0}>
    <${Transcript} items=${items} notes=${notes} keepsWords=${isSilent} onRepeat=${() => void say('Say that again, please.')}
      labels=${{ transcript: 'What was said', assistant: 'Lead' }} />
    <div class="composer">
      <div class="composer-row">
        <${TalkButton} client=${client} onStart=${() => void start(true)}><${Icon} name=${isOff ? 'mic-off' : 'mic'} /><//>
        <${MessageField} client=${client} onSend=${say} autoFocus=${isSilent} shortcut="/"
          labels=${{ message: 'Type to the lead agent', placeholder: 'Or type here' }}><${Icon} name="send" /><//>
      </div>
      <div class="composer-row composer-modes">
        <${TalkModes} client=${client} onMode=${(mode: string) => localStorage.setItem('talk-mode', mode)} /><${TalkHint} client=${client} />
      </div>
    </div>
  </section>`;
}
