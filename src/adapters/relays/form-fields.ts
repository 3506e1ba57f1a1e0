// The questions of a form that an agent asks (`elicitation/create` of ACP and of MCP): one for each field, asked one
// after the other, and what an answer is as a value of its field.

import type { RelayAnswer } from '../../actors/ports/relay.ts';

/** A field of a form: one question. */
export interface FormField {
  readonly name: string;
  readonly text: string;
  readonly options: readonly {
    readonly id: string;
    readonly label: string;
    readonly description?: string;
  }[];
  /** The type of its value in the schema. */
  readonly type: string;
  /** Returns the value of an answer; undefined: it is none. */
  value(answer: RelayAnswer): unknown;
  /** The field for an answer in words that is none of the options. */
  readonly custom: string | null;
}

type Property = Readonly<Record<string, unknown>>;

const MAX_FIELDS = 20;
const CUSTOM = '_custom';

/** A form as protocols write it: an object with flat fields. */
export interface AskedForm {
  readonly mode?: unknown;
  readonly message: string;
  readonly requestedSchema?: unknown;
}

/** Reads the questions of a form; null: it is no form, or too long. */
export function fieldsOf({
  mode,
  message,
  requestedSchema,
}: AskedForm): readonly FormField[] | null {
  const { properties } = (requestedSchema ?? {}) as {
    readonly properties?: Readonly<Record<string, Property>>;
  };
  if ((mode ?? 'form') !== 'form' || !properties) return null;
  const names = Object.keys(properties);
  // "Other", beside a field of choices.
  const asked = names.filter(
    (name) => !(name.endsWith(CUSTOM) && names.includes(name.slice(0, -CUSTOM.length))),
  );
  if (asked.length === 0 || asked.length > MAX_FIELDS) return null;
  return asked.map((name) => {
    const property = properties[name] ?? {};
    const title = wordsIn(property, 'description') ?? wordsIn(property, 'title');
    const custom = names.includes(name + CUSTOM) ? name + CUSTOM : null;
    const text = title === null || asked.length === 1 ? message : `${message}\n${title}`;
    const type = wordsIn(property, 'type') ?? 'string';
    return { name, text, type, custom, ...choicesOf(property, custom !== null) };
  });
}

function choicesOf(property: Property, isOpen: boolean): Pick<FormField, 'options' | 'value'> {
  const { type, items } = property as { readonly type?: unknown; readonly items?: Property };
  if (type === 'boolean')
    return {
      options: [
        { id: 'true', label: 'Yes' },
        { id: 'false', label: 'No' },
      ],
      value: (answer) => {
        const id = idIn(answer);
        if (id !== null) return id === 'true';
        return { yes: true, true: true, no: false, false: false }[wordsOfAnswer(answer)];
      },
    };
  const options = optionsOf(type === 'array' && items ? items : property);
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

/** The answer is none of the options, and may be given in words. */
export const NOT_LISTED: unique symbol = Symbol('not listed');

function idIn(answer: RelayAnswer): string | null {
  return answer.type === 'answered' ? (answer.optionId ?? null) : null;
}

function wordsOfAnswer(answer: RelayAnswer): string {
  return answer.type === 'answered' ? answer.text.trim().toLowerCase() : '';
}

function optionsOf(property: Property): FormField['options'] {
  const { enum: values, oneOf, anyOf } = property;
  if (Array.isArray(values))
    return values.flatMap((id) => (typeof id === 'string' ? [{ id, label: id }] : []));
  const choices = Array.isArray(oneOf) ? oneOf : anyOf;
  if (!Array.isArray(choices)) return [];
  return choices.flatMap((choice: Property) => {
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

function wordsIn(value: Property, key: string): string | null {
  const words = value[key];
  return typeof words === 'string' && words !== '' ? words : null;
}
