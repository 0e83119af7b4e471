/** TypeScript examples of a Markdown text, in their order. */
export function readmeExamples(markdown: string): string[] {
  return [...markdown.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, example = ""]) => example);
}
