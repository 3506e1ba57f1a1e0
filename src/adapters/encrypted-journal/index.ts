// The entry `offstage/encrypted-journal`.

export { encryptedJournal, encryptionCodec } from './encrypted-journal.ts';
