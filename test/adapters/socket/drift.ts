// Has what we read of a wire moved away from what the official package says of it?

type KeyOf<Union> = Union extends unknown ? keyof Union : never;
type ValueOf<Union, Key> = Union extends unknown
  ? Key extends keyof Union
    ? Union[Key]
    : never
  : never;
/**
 * `never` when each field that we read is in the official type and has a type that our schema
 * accepts; else the names of the fields that drifted.
 */
export type Drift<Read, Official> = {
  [Key in keyof Read]-?: Key extends KeyOf<Official>
    ? NonNullable<ValueOf<Official, Key>> extends NonNullable<Read[Key]>
      ? never
      : NonNullable<Read[Key]> extends object
        ? Drift<NonNullable<Read[Key]>, NonNullable<ValueOf<Official, Key>>>
        : Key
    : Key;
}[keyof Read];
