import type { SubagentConfig } from '../../../src/index.ts';

export const ANSWER: string;
export const SILENT: string;
export const WATCHED: string;
export const TASK: string;
export const rides: SubagentConfig;
