import { formatDuration, parseDuration } from "@devplat/base";
import { z } from "zod";

/** Format that `parseDuration` accepts, for editors that read the published JSON Schema. */
const FORM = "^(\\d+(\\.\\d+)?(ms|[smhdw]))+$";

const DURATION_EXPECTED = "expected a duration such as 30s, 15m, 36h or 7d";

/** Message for a value of another type, such as the number 30. A missing key has the usual message. */
function notText({ input }: { readonly input?: unknown }): string | undefined {
  return input === undefined ? undefined : DURATION_EXPECTED;
}

/** A duration key: text such as `15m`, `36h`, `7d` in the file, milliseconds in the program. Limits are in milliseconds, inclusive. */
export function duration(options: { readonly min?: number; readonly max?: number } = {}) {
  return z.codec(z.string({ error: notText }).meta({ pattern: FORM }), z.number(), {
    decode: (text, context) => {
      const ms = parseDuration(text);
      const fault =
        ms === undefined
          ? DURATION_EXPECTED
          : options.min !== undefined && ms < options.min
            ? `must be at least ${formatDuration(options.min)}`
            : options.max !== undefined && ms > options.max
              ? `must be at most ${formatDuration(options.max)}`
              : undefined;
      if (fault === undefined && ms !== undefined) return ms;
      context.issues.push({ code: "custom", message: fault ?? "", input: text });
      return z.NEVER;
    },
    encode: formatDuration,
  });
}
