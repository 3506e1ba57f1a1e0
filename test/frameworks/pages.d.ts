import type { Browser } from 'playwright-core';

export function bundlePage(entry: string): Promise<string>;
export function launch(): Promise<Browser>;
