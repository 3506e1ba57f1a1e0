// The questions of an agent's form (`elicitation/create` in ACP and MCP). Each field is one question, the questions are
// asked one by one, and answers are converted to field values. A form is external data, so the type of each part is
// validated.

import type { RelayAnswer } from '../../actors/ports/relay.ts';
import { clip } from '../../values/clip.ts';

/** A form field, which is one question. */
export interface FormField {
  readonly name: string;
  readonly text: string;
  readonly options: readonly {
    readonly id: string;
    readonly label: string;
    readonly description?: string;
  }[];
  /** The value's type in the schema. */
  readonly type: string;
  /** Returns an answer's value; undefined if the answer is invalid for the field. */
  value(answer: RelayAnswer): FieldValue | typeof NOT_LISTED | undefined;
  /** The field that receives a free-text answer that matches none of the options. */
  readonly custom: string | null;
}

type Property = Readonly<Record<string, unknown>>;

const MAX_FIELDS = 20;
/** The maximum number of times that a field is asked again after an invalid answer. */
const MAX_TRIES = 3;
const CUSTOM = '_custom';
const YES_OR_NO = new Map([
  ['yes', true],
  ['true', true],
  ['no', false],
  ['false', false],
]);

/** A form in the protocols' notation: an object with flat fields. */
export interface AskedForm {
  readonly mode?: unknown;
  readonly message: string;
  readonly requestedSchema?: unknown;
}

/** A field's value in a protocol message. */
export type FieldValue = string | number | boolean | string[];

/** Returns the fields of a form by name; empty if there are none. */
export function propertiesOf(requestedSchema: unknown): ReadonlyMap<string, Property> {
  const { properties } = recordOf(requestedSchema);
  return new Map(
    Object.entries(recordOf(properties)).map(([name, property]) => [name, recordOf(property)]),
  );
}

/** Returns the questions of a form; null if the value is not a form or the form is too long. */
export function fieldsOf({
  mode,
  message,
  requestedSchema,
}: AskedForm): readonly FormField[] | null {
  const properties = propertiesOf(requestedSchema);
  if ((mode ?? 'form') !== 'form') return null;
  // Omits an "Other" field, which belongs to a choice field.
  const asked = [...properties].filter(
    ([name]) => !(name.endsWith(CUSTOM) && properties.has(name.slice(0, -CUSTOM.length))),
  );
  if (asked.length === 0 || asked.length > MAX_FIELDS) return null;
  return asked.map(([name, property]) => {
    const title = wordsIn(property, 'description') ?? wordsIn(property, 'title');
    const custom = properties.has(name + CUSTOM) ? name + CUSTOM : null;
    const text = title === null || asked.length === 1 ? message : `${message}\n${title}`;
    const type = wordsIn(property, 'type') ?? 'string';
    return { name, text, type, custom, ...choicesOf(property, custom !== null) };
  });
}

/** One question of a form. `key` is unique in the form. */
export interface FieldQuestion {
  readonly key: string;
  readonly text: string;
  readonly options: FormField['options'];
}

/** Asks all questions of a form, one by one. Returns the content of the form; null if a question is not answered. */
export async function fillIn(
  fields: readonly FormField[],
  ask: (question: FieldQuestion) => Promise<RelayAnswer>,
): Promise<Record<string, FieldValue> | null> {
  // A field may have any name, such as `__proto__`.
  const content: [string, FieldValue][] = [];
  for (const field of fields) {
    const given = await askFor(field, ask);
    if (!given) return null;
    content.push(given);
  }
  return Object.fromEntries(content);
}

async function askFor(
  { name, text, type, options, custom, value }: FormField,
  ask: (question: FieldQuestion) => Promise<RelayAnswer>,
): Promise<[string, FieldValue] | null> {
  const labels = options.map(({ label }) => label).join(', ');
  const wanted = options.length > 0 ? `one of: ${labels}` : `a ${type}`;
  const key = clip(name, 80);
  for (let attempt = 1; attempt <= MAX_TRIES; attempt += 1) {
    const answer = await ask({
      key: attempt === 1 ? key : `${key}#${attempt}`,
      text: attempt === 1 ? text : `${text}\nExpected ${wanted}.`,
      options,
    });
    if (answer.type !== 'answered') return null;
    const given = value(answer);
    if (given === NOT_LISTED) return custom === null ? null : [custom, answer.text];
    if (given !== undefined) return [name, given];
  }
  return null;
}

function choicesOf(property: Property, isOpen: boolean): Pick<FormField, 'options' | 'value'> {
  const { type, items } = property;
  if (type === 'boolean')
    return {
      options: [
        { id: 'true', label: 'Yes' },
        { id: 'false', label: 'No' },
      ],
      value: (answer) => {
        const id = idIn(answer);
        if (id !== null) return id === 'true';
        return YES_OR_NO.get(wordsOfAnswer(answer));
      },
    };
  const options = optionsOf(type === 'array' && items ? recordOf(items) : property);
  const choice = (answer: RelayAnswer): string | undefined => {
    const said = wordsOfAnswer(answer);
    return options.find(({ id, label }) => id === idIn(answer) || label.toLowerCase() === said)?.id;
  };
  if (options.length > 0)
    return {
      options,
      value: (answer) => {
        const chosen = choice(answer);
        if (chosen === undefined) return isOpen ? NOT_LISTED : undefined;
        return type === 'array' ? [chosen] : chosen;
      },
    };
  return {
    options: [],
    value: (answer) => {
      if (answer.type !== 'answered') return undefined;
      if (type !== 'number' && type !== 'integer') return answer.text;
      const number = Number(answer.text);
      return Number.isFinite(number) ? number : undefined;
    },
  };
}

/** The answer is not one of the options, but free text is allowed. */
export const NOT_LISTED: unique symbol = Symbol('not listed');

function idIn(answer: RelayAnswer): string | null {
  return answer.type === 'answered' ? (answer.optionId ?? null) : null;
}

function wordsOfAnswer(answer: RelayAnswer): string {
  return answer.type === 'answered' ? answer.text.trim().toLowerCase() : '';
}

function optionsOf(property: Property): FormField['options'] {
  const { enum: values, enumNames, oneOf, anyOf } = property;
  // `enumNames`: the titles of the options in MCP before 2025-11-25 (LegacyTitledEnumSchema in its schema).
  const titles = Array.isArray(enumNames) ? enumNames.map((title: unknown) => ({ title })) : [];
  if (Array.isArray(values))
    return values.flatMap((id, at) =>
      typeof id === 'string' ? [{ id, label: wordsIn(recordOf(titles[at]), 'title') ?? id }] : [],
    );
  const choices = Array.isArray(oneOf) ? oneOf : anyOf;
  if (!Array.isArray(choices)) return [];
  return choices.flatMap((given: unknown) => {
    const choice = recordOf(given);
    const id = wordsIn(choice, 'const');
    if (id === null) return [];
    const description = wordsIn(choice, 'description');
    return [
      {
        id,
        label: wordsIn(choice, 'title') ?? id,
        ...(description === null ? {} : { description }),
      },
    ];
  });
}

function recordOf(value: unknown): Property {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function wordsIn(value: Property, key: string): string | null {
  const words = value[key];
  return typeof words === 'string' && words !== '' ? words : null;
}
