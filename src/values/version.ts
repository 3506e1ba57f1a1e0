// The version of this package, as its programs tell it to others; a test holds it against package.json.

export const OFFSTAGE_VERSION = '0.1.0';
