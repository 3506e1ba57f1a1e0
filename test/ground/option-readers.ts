// Uses TypeScript's checker to find the options of the public API that no code reads.
//
// An option is a property of an options type. An options type is the type of a parameter of an exported function,
// constructor or method, an exported type with such a name, or a type nested in one of these. A read is a property
// access or a destructuring that the checker resolves to the declaration of the property. An entry in a schema does not
// count as a read.
//
//   OPT-1. An option that a schema parses counts as read if code in the same folder reads the parsed property.
//   OPT-2. An option that is spread into another type counts as read if that type's property is read. The caller's
//          table names the type.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  API,
  SignatureKind,
  SymbolFlags,
  type Checker,
  type NodeHandle,
  type Program,
  type Symbol as CheckedSymbol,
  type Type,
} from 'typescript/unstable/sync';
import { SyntaxKind, type Node } from 'typescript/unstable/ast';
import {
  isAsExpression,
  isBinaryExpression,
  isBindingElement,
  isCallExpression,
  isElementAccessExpression,
  isIdentifier,
  isObjectBindingPattern,
  isPropertyAccessExpression,
  isSatisfiesExpression,
  isStringLiteral,
} from 'typescript/unstable/ast/is';

export interface OptionsScan {
  /** The options that the scan checked, keyed by the name of their type. */
  readonly looked: ReadonlyMap<string, readonly string[]>;
  /** `Type.option`, sorted. */
  readonly unread: readonly string[];
  /** Entries of `spreadInto` that no option needs. */
  readonly needless: readonly string[];
}

/** Names of options types. Other types, such as views and events, are records. */
const OPTIONS =
  /(Options|Config|Definition|Limits|Hooks|Handlers|Agent|Policy|Target|App|Choice|Request|Recovery|Directive|Setup|Operation|VouchedFor)$/;
const MAX_DEPTH = 6;

/** @param spreadInto For each options type, the types or functions into which its values are spread. */
export function scanOptions(
  directory: string,
  spreadInto: Readonly<Record<string, readonly string[]>> = {},
): OptionsScan {
  const api = new API({ cwd: directory });
  try {
    const [project] = api.updateSnapshot({ openProjects: ['tsconfig.json'] }).getProjects();
    if (!project) throw new Error(`No project in ${directory}`);
    const { program, checker } = project;
    return new Scan(directory, program, checker).result(spreadInto);
  } finally {
    api.close();
  }
}

interface Option {
  readonly owner: string;
  readonly name: string;
  readonly declaration: NodeHandle;
}

class Scan {
  readonly #program: Program;
  readonly #checker: Checker;
  readonly #source: string;
  readonly #directory: string;
  readonly #options = new Map<string, Option>();
  readonly #seen = new Set<number>();
  /** Keys of the declarations that are read. */
  readonly #read = new Set<string>();
  /**
   * `folder/name` for properties that are read from schemas, and `part Type.name` for all other properties that are
   * read.
   */
  readonly #readAs = new Set<string>();

  constructor(directory: string, program: Program, checker: Checker) {
    this.#directory = directory;
    this.#source = join(directory, 'src/');
    this.#program = program;
    this.#checker = checker;
    for (const file of this.#entryPoints()) this.#exportsOf(file);
    this.#reads();
  }

  result(spreadInto: Readonly<Record<string, readonly string[]>>): OptionsScan {
    const looked = new Map<string, string[]>();
    const unread: string[] = [];
    const needed = new Set<string>();
    for (const [key, { owner, name, declaration }] of this.#options) {
      looked.set(owner, [...(looked.get(owner) ?? []), name]);
      if (this.#read.has(key) || this.#readAs.has(inFolderOf(declaration, name))) continue;
      const part = partOf(this.#source, declaration);
      const reader = spreadInto[owner]?.find((type) =>
        [part, SHARED].some((where) => this.#readAs.has(`${where} ${type}.${name}`)),
      );
      if (reader === undefined) unread.push(`${owner}.${name}`);
      else needed.add(`${owner} → ${reader}`);
    }
    const needless = Object.entries(spreadInto)
      .flatMap(([owner, types]) => types.map((type) => `${owner} → ${type}`))
      .filter((entry) => !needed.has(entry));
    return { looked, unread: unread.toSorted(), needless };
  }

  #entryPoints(): readonly string[] {
    const { exports } = JSON.parse(readFileSync(join(this.#directory, 'package.json'), 'utf8')) as {
      readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
    };
    return Object.values(exports)
      .filter((entry) => typeof entry !== 'string')
      .map((entry) =>
        join(this.#directory, entry.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts')),
      );
  }

  #exportsOf(path: string): void {
    const file = this.#program.getSourceFile(path);
    const module = file && this.#checker.getSymbolAtLocation(file);
    if (!module) throw new Error(`${path} is not a module of the project`);
    for (const exported of this.#checker.getExportsOfModule(module)) {
      const target =
        exported.flags & SymbolFlags.Alias ? this.#checker.getAliasedSymbol(exported) : exported;
      if (target.flags & (SymbolFlags.Interface | SymbolFlags.TypeAlias)) {
        if (OPTIONS.test(exported.name)) this.#take(this.#checker.getDeclaredTypeOfSymbol(target));
      }
      if (target.flags & (SymbolFlags.Interface | SymbolFlags.Class))
        this.#methodsOf(this.#checker.getDeclaredTypeOfSymbol(target));
      if (!(target.flags & SymbolFlags.Value)) continue;
      const type = this.#checker.getTypeOfSymbol(target);
      if (!type) continue;
      for (const kind of [SignatureKind.Call, SignatureKind.Construct])
        for (const signature of this.#checker.getSignaturesOfType(type, kind))
          for (const parameter of signature.getParameters())
            this.#take(this.#checker.getTypeOfSymbol(parameter));
    }
  }

  /** Collects the parameters of methods whose type has the name of an options type. */
  #methodsOf(type: Type | undefined): void {
    if (!type) return;
    for (const method of this.#checker.getPropertiesOfType(type)) {
      const own = this.#checker.getTypeOfSymbol(method);
      if (!own?.isObjectType()) continue;
      for (const signature of this.#checker.getSignaturesOfType(own, SignatureKind.Call))
        for (const parameter of signature.getParameters()) {
          const given = this.#checker.getTypeOfSymbol(parameter);
          for (const each of given?.isUnionType() ? given.getTypes() : [given])
            if (OPTIONS.test(each?.getSymbol()?.name ?? '')) this.#take(each);
        }
    }
  }

  #take(type: Type | undefined, depth = 0): void {
    if (!type || depth > MAX_DEPTH) return;
    if (type.isUnionType() || type.isIntersectionType()) {
      for (const each of type.getTypes()) this.#take(each, depth);
      return;
    }
    if (!type.isObjectType() || this.#seen.has(type.id)) return;
    this.#seen.add(type.id);
    if ((type.getSymbol()?.flags ?? 0) & SymbolFlags.Class) return;
    if (this.#checker.isArrayLikeType(type)) {
      if (type.isTypeReference())
        for (const each of this.#checker.getTypeArguments(type)) this.#take(each, depth + 1);
      return;
    }
    for (const property of this.#checker.getPropertiesOfType(type))
      this.#takeProperty(property, depth);
    for (const { valueType } of this.#checker.getIndexInfosOfType(type))
      this.#take(valueType, depth + 1);
  }

  #takeProperty(property: CheckedSymbol, depth: number): void {
    const [declaration] = property.declarations;
    if (!declaration?.path.startsWith(this.#source)) return;
    const isProperty = declaration.kind === SyntaxKind.PropertySignature;
    if (!isProperty && declaration.kind !== SyntaxKind.MethodSignature) return;
    const owner = ownerOf(declaration);
    const [type = ''] = owner.split('.');
    // A function can declare its options inline.
    if (OPTIONS.test(type) || /^[a-z]/.test(type))
      this.#options.set(keyOf(declaration), { owner, name: property.name, declaration });
    if (isProperty) this.#take(this.#checker.getTypeOfSymbol(property), depth + 1);
  }

  #reads(): void {
    const names = new Set([...this.#options.values()].map(({ name }) => name));
    for (const path of this.#program.getSourceFileNames()) {
      const file = path.startsWith(this.#source) ? this.#program.getSourceFile(path) : undefined;
      if (!file) continue;
      const accessed: Node[] = [];
      const visit = (node: Node): void => {
        const name = readName(node);
        if (name && names.has(textOf(name))) accessed.push(name);
        node.forEachChild(visit);
      };
      visit(file);
      const symbols = this.#checker.getSymbolAtLocation(accessed);
      for (const [index, name] of accessed.entries()) {
        const symbol = this.#destructured(name) ?? symbols[index];
        for (const declaration of symbol?.declarations ?? []) this.#note(declaration, textOf(name));
      }
    }
  }

  /** Returns the property that a destructuring reads, because the checker returns the symbol of the variable. */
  #destructured(name: Node): CheckedSymbol | undefined {
    const { parent } = name;
    if (!isBindingElement(parent)) return undefined;
    const type = this.#checker.getTypeAtLocation(parent.parent);
    return type && this.#checker.getPropertyOfType(type, textOf(name));
  }

  #note(declaration: NodeHandle, name: string): void {
    this.#read.add(keyOf(declaration));
    if (!declaration.path.startsWith(this.#source)) return;
    if (isOfSchema(declaration)) this.#readAs.add(inFolderOf(declaration, name));
    else this.#readAs.add(`${partOf(this.#source, declaration)} ${ownerOf(declaration)}.${name}`);
  }
}

function keyOf({ path, index }: NodeHandle): string {
  return `${path}#${index}`;
}

function inFolderOf({ path }: NodeHandle, name: string): string {
  return `${path.slice(0, path.lastIndexOf('/'))}/${name}`;
}

/** The part for code that several adapters share and for all code outside adapters. */
const SHARED = 'shared';

/** Returns the adapter that a declaration belongs to, because two adapters may have types with the same name. */
function partOf(source: string, { path }: NodeHandle): string {
  const [folder, adapter = ''] = path.slice(source.length).split('/');
  return folder === 'adapters' && !['socket', 'listen'].includes(adapter) ? adapter : SHARED;
}

function textOf(name: Node): string {
  return isIdentifier(name) || isStringLiteral(name) ? name.text : '';
}

/** Returns the name of the property that this node reads. */
function readName(node: Node): Node | undefined {
  if (isPropertyAccessExpression(node)) {
    const { parent } = node;
    const isWritten =
      isBinaryExpression(parent) &&
      parent.left === node &&
      parent.operatorToken.kind === SyntaxKind.EqualsToken;
    return isWritten ? undefined : node.name;
  }
  if (isElementAccessExpression(node)) return node.argumentExpression;
  if (isBindingElement(node) && isObjectBindingPattern(node.parent))
    return node.propertyName ?? node.name;
  return undefined;
}

/** Returns the type or function that declares a property, or `Type.option` if the property is nested. */
function ownerOf(declaration: NodeHandle): string {
  const nested: string[] = [];
  for (let node = declaration.resolve()?.parent; node; node = node.parent) {
    const { name: named } = node as { readonly name?: Node };
    const name = named ? textOf(named) : '';
    if (node.kind === SyntaxKind.PropertySignature) nested.unshift(name);
    else if (name !== '' && node.kind !== SyntaxKind.Parameter) return [name, ...nested].join('.');
  }
  return nested.join('.');
}

/** Returns whether the declaration is an entry of an object in `z.object(…)` or a similar call. */
function isOfSchema(declaration: NodeHandle): boolean {
  if (
    declaration.kind !== SyntaxKind.PropertyAssignment &&
    declaration.kind !== SyntaxKind.ShorthandPropertyAssignment
  )
    return false;
  let parent = declaration.resolve()?.parent?.parent;
  while (parent && (isSatisfiesExpression(parent) || isAsExpression(parent)))
    parent = parent.parent;
  return (
    parent !== undefined &&
    isCallExpression(parent) &&
    isPropertyAccessExpression(parent.expression) &&
    /^(object|strictObject|looseObject)$/.test(textOf(parent.expression.name))
  );
}
