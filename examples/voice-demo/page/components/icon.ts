// A few line icons, drawn on a grid of 24.

import { html } from 'htm/preact';

const paths = {
  mic: 'M12 3a3 3 0 0 0-3 3v6a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3Z M5.5 11.5a6.5 6.5 0 0 0 13 0 M12 18v3',
  'mic-off':
    'M9 9v3a3 3 0 0 0 4.6 2.5 M15 11V6a3 3 0 0 0-5.8-1.1 M5.5 11.5a6.5 6.5 0 0 0 10.2 5.3 M18.5 11.5c0 .9-.2 1.700-.5 2.500 M12 18v3 M4 4l16 16',
  send: 'M5 12h13 M12 6l6 6-6 6',
  stop: 'M6.500 6.500h11v11h-11z',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8Z M12 2.500v2 M12 19.500v2 M4.800 4.800l1.400 1.400 M17.800 17.800l1.400 1.400 M2.500 12h2 M19.500 12h2 M4.800 19.200l1.400-1.400 M17.800 6.200l1.400-1.400',
  moon: 'M19.500 14.500A8 8 0 0 1 9.500 4.500a8 8 0 1 0 10 10Z',
  close: 'M6 6l12 12 M18 6L6 18',
  check: 'M5 12.500l4.500 4.500L19 7.500',
  copy: 'M9 9h10v11H9z M5 15V4h10',
} as const;

export function Icon({ name }: { name: keyof typeof paths }) {
  return html`
    <svg
      class="icon"
      viewBox="0 0 24 24"
      width="20"
      height="20"
      aria-hidden="true"
      focusable="false"
    >
      <path d=${paths[name]} />
    </svg>
  `;
}
