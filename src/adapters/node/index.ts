export { nodeEnvironment } from './environment.ts';
