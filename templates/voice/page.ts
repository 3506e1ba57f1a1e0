import { connect } from 'offstage/client';

const client = connect({ url: '/offstage', token: location.hash.slice(1) });
const [talk, transcript, questions] = document.body.children as unknown as HTMLElement[];
const start = async (button: HTMLElement): Promise<void> => {
  const heard = await client.speaker.start();
  button.textContent = `Loudspeaker ${heard}, microphone ${await client.microphone.start()}`;
};
talk?.addEventListener('click', () => void start(talk));
client.store.subscribe(({ context }) => {
  if (transcript)
    transcript.innerText = context.transcript
      .map(({ role, text }) => `${role}: ${text}`)
      .join('\n');
  const asked = context.questions.find(({ state }) => state === 'presenting' || state === 'open');
  if (asked?.state === 'presenting') void client.questionShown(asked.requestId); // a click counts from now on
  const buttons = asked?.options.map(({ id, label }) => {
    const button = document.createElement('button');
    button.textContent = label;
    button.disabled = asked.mayAnswer === false; // this user may not answer
    button.addEventListener('click', () => void client.answer(asked.requestId, { optionId: id }));
    return button;
  });
  questions?.replaceChildren(asked?.question ?? '', ...(buttons ?? []));
});
