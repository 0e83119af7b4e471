/** Makes a sentence of a text: a capital letter first, and a full stop at the end unless it ends with `!` or `?`. */
export function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
