// `offstage/encrypted-journal`

export { encryptedJournal, encryptionCodec } from './encrypted-journal.ts';
export type { EncryptionOptions } from './encrypted-journal.ts';
