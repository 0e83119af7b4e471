import type { ManifestContent, ManifestResponse, StoredObject } from "../manifest/manifest.ts";

/** Milliseconds between two records of the use of one response. The order of eviction needs no more. */
export const USE_INTERVAL_MS = 300_000;

/**
 * Content with one more response, within a limit.
 *
 * @param maxBytes of all responses together
 * @returns undefined if the response is there
 */
export function withResponse(
  content: ManifestContent,
  response: ManifestResponse,
  maxBytes: number,
): ManifestContent | undefined {
  if (content.responses.some(({ key }) => key === response.key)) return undefined;
  const responses = [...content.responses, response];
  return withinLimit({ ...content, responses }, maxBytes) ?? { ...content, responses };
}

/** Content without the responses that were not used for the longest time. @returns undefined if it is within the limit */
export function withinLimit(content: ManifestContent, maxBytes: number): ManifestContent | undefined {
  let total = bytesOf(content.responses.map(({ object }) => object));
  if (total <= maxBytes) return undefined;
  const dropped = new Set<string>();
  for (const { key, object } of content.responses.toSorted((a, b) => a.usedAt - b.usedAt)) {
    if (total <= maxBytes) break;
    dropped.add(key);
    total -= object.length;
  }
  return { ...content, responses: content.responses.filter(({ key }) => !dropped.has(key)) };
}

/** Content without a response whose object is not usable. @returns undefined if it names another object, or none */
export function withoutObject(content: ManifestContent, { name }: StoredObject): ManifestContent | undefined {
  const responses = content.responses.filter(({ object }) => object.name !== name);
  return responses.length === content.responses.length ? undefined : { ...content, responses };
}

/** Content with later uses. @param uses times by key @returns undefined if none is {@link USE_INTERVAL_MS} later */
export function withUses(
  content: ManifestContent,
  uses: ReadonlyMap<string, number>,
): ManifestContent | undefined {
  let changed = false;
  const responses = content.responses.map((response) => {
    const usedAt = uses.get(response.key);
    if (usedAt === undefined || usedAt - response.usedAt < USE_INTERVAL_MS) return response;
    changed = true;
    return { ...response, usedAt };
  });
  return changed ? { ...content, responses } : undefined;
}

export function bytesOf(objects: readonly StoredObject[]): number {
  return objects.reduce((sum, { length }) => sum + length, 0);
}
