import type { Right } from "../rights.ts";

/** What the scalar fields of a type need at level read, and where its other fields lead. */
export type TypeRule = (
  | { readonly needs: Right }
  /** What led to the value is enough; the right is needed where nothing did: `node(id:)`, results of mutations. */
  | { readonly needsAtRoot: Right }
) & {
  /**
   * Fields that lead to another value of the same repository. A field that leads to a type with a rule and is not named here
   * may lead to another repository: only `REFERENCE_FIELDS` can be selected behind it.
   */
  readonly sameRepository?: readonly string[];
};

/**
 * What a mutation needs at level write. Every id and repository in its input must belong to an allowed repository, or to a
 * person or team.
 */
export type MutationRule =
  | { readonly needs: readonly Right[] }
  /** The right of the value that this input field names. */
  | { readonly needsRightOf: string };
