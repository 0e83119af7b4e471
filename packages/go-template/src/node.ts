import type { Place } from "./errors.ts";

/** Nodes that run one after the other. */
export type NodeList = readonly Node[];

/** Text or an action. */
export type Node =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "action"; readonly place: Place; readonly pipeline: Pipeline }
  | Branch
  | {
      readonly kind: "template";
      readonly place: Place;
      readonly name: string;
      readonly pipeline: Pipeline | undefined;
    }
  | { readonly kind: "break" | "continue"; readonly place: Place };

/** `if`, `with` or `range` with its `else` part. */
export interface Branch {
  readonly kind: "if" | "with" | "range";
  readonly place: Place;
  readonly pipeline: Pipeline;
  readonly body: NodeList;
  readonly otherwise: NodeList;
}

/** `$x := command | command`. */
export interface Pipeline {
  readonly place: Place;
  /** Variables that get the value. Only `range` can have two. */
  readonly variables: readonly string[];
  /** Whether the pipeline sets existing variables (`=`) or declares new ones (`:=`). */
  readonly isAssignment: boolean;
  readonly commands: readonly Command[];
}

/** An operand with its arguments. Only functions take arguments. */
export interface Command {
  readonly place: Place;
  readonly operands: readonly [Operand, ...Operand[]];
}

/** One word of a command. `fields` are the fields after it: `$x.a.b` has two. */
export type Operand = { readonly place: Place } & (
  | { readonly kind: "dot" | "nil" }
  | { readonly kind: "bool"; readonly value: boolean }
  | { readonly kind: "number"; readonly value: bigint | number }
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "field"; readonly fields: readonly string[] }
  | { readonly kind: "variable"; readonly name: string; readonly fields: readonly string[] }
  | { readonly kind: "function"; readonly name: string }
  | { readonly kind: "chain"; readonly of: Operand; readonly fields: readonly string[] }
  | { readonly kind: "pipeline"; readonly pipeline: Pipeline }
);
