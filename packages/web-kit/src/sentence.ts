/** A text as a sentence of a page: it begins with a capital letter and ends with a full stop, unless it ends with another mark. */
export function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
