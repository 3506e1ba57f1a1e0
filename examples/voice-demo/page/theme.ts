// Light or dark: what the system says, until the user says otherwise.

import { signal } from '@preact/signals';

type Theme = 'light' | 'dark';

const KEY = 'theme';
const system = matchMedia('(prefers-color-scheme: dark)');
const chosen = localStorage.getItem(KEY);

export const theme = signal<Theme>(
  chosen === 'light' || chosen === 'dark' ? chosen : systemTheme(),
);

export function applyTheme(): void {
  theme.subscribe((value) => {
    document.documentElement.dataset['theme'] = value;
  });
  system.addEventListener('change', () => {
    if (localStorage.getItem(KEY) === null) theme.value = systemTheme();
  });
}

export function toggleTheme(): void {
  theme.value = theme.value === 'dark' ? 'light' : 'dark';
  // Back at what the system says, it follows the system again.
  if (theme.value === systemTheme()) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme.value);
}

function systemTheme(): Theme {
  return system.matches ? 'dark' : 'light';
}
