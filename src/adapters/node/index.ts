export { nodeEnvironment } from './environment.ts';
export { fileClaims, type FileClaims, type FileClaimsOptions } from './file-claims.ts';
