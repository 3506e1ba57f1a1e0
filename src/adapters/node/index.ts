export { nodeEnvironment } from './environment.ts';
export { fileClaims, type FileClaims } from './file-claims.ts';
