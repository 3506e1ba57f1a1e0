// `offstage/encrypted-journal`

export { encryptedJournal } from './encrypted-journal.ts';
export type { EncryptionOptions } from './encrypted-journal.ts';
