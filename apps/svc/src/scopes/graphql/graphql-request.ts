/** A GraphQL request, as its JSON body has it. */
export interface GraphqlRequest {
  readonly query: string;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** Reads a request from a parsed JSON body. @returns what is wrong with it, as text */
export function readGraphqlRequest(body: unknown): GraphqlRequest | string {
  if (Array.isArray(body)) return "batches of queries are not taken";
  if (typeof body !== "object" || body === null) return "the body must be a JSON object";
  const { query, operationName, variables } = body as Record<string, unknown>;
  if (typeof query !== "string") return "query must be a string";
  if (operationName !== undefined && operationName !== null && typeof operationName !== "string") {
    return "operationName must be a string";
  }
  if (
    variables !== undefined &&
    variables !== null &&
    (typeof variables !== "object" || Array.isArray(variables))
  ) {
    return "variables must be an object";
  }
  return {
    query,
    operationName: operationName === null || operationName === "" ? undefined : operationName,
    variables: (variables ?? {}) as Record<string, unknown>,
  };
}
