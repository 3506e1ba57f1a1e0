// Compares the fields that the adapter reads from a wire with those in the official package.

type KeyOf<Union> = Union extends unknown ? keyof Union : never;
type ValueOf<Union, Key> = Union extends unknown
  ? Key extends keyof Union
    ? Union[Key]
    : never
  : never;
/**
 * `never` if every field that the adapter reads exists in the official type and has a type that the adapter's schema
 * accepts; otherwise the names of the fields that differ.
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
