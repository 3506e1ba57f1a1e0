// `offstage/machines`: the statecharts, and what they wait for.

export * from '../machines/index.ts';
export { whyWaiting } from '../machines/why-waiting.ts';
